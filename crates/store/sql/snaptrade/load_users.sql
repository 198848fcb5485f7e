insert into spillway.snaptrade_user (user_id, sealed_secret)
select user_id, sealed_secret from unnest($1::text[], $2::bytea[]) as u (user_id, sealed_secret)
order by user_id collate "C"
on conflict (user_id) do nothing;
