select account_id, user_id, state, connection_id from spillway.snaptrade_account where account_id = any ($1::uuid[]);
