update spillway.snaptrade_account
set holdings_as_of = $2, holdings_synced_at = clock_timestamp(), updated_at = clock_timestamp()
where account_id = $1;
