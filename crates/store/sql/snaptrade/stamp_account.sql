-- Nothing where newer holdings are stored already: two syncs of one account may end in either order.
update spillway.snaptrade_account
set holdings_as_of = $2, holdings_synced_at = clock_timestamp(), updated_at = clock_timestamp()
where account_id = $1 and (holdings_as_of is null or $2::timestamptz is null or holdings_as_of <= $2);
