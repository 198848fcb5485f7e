delete from spillway.snaptrade_activity
where account_id = $1 and ($2::date is null or trade_date >= $2::date) and activity_id <> all ($3::text[]);
