insert into spillway.snaptrade_account (account_id, user_id)
select account_id, user_id from unnest($1::text[], $2::uuid[]) as a (user_id, account_id)
order by account_id
on conflict (account_id) do nothing;
