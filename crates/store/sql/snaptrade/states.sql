select account_id, state from spillway.snaptrade_account where account_id = any ($1::uuid[]);
