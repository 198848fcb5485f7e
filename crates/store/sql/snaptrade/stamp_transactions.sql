update spillway.snaptrade_account
set transactions_synced_at = clock_timestamp(), updated_at = clock_timestamp() where account_id = $1;
