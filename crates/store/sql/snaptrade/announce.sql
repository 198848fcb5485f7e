insert into spillway.snaptrade_account (account_id, user_id, connection_id)
select $1, u.user_id, $3 from spillway.snaptrade_user u where u.user_id = $2
on conflict (account_id) do nothing;
