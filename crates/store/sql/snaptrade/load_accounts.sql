insert into spillway.snaptrade_account (account_id, user_id)
select account_id, $1 from unnest($2::uuid[]) as a (account_id) order by account_id
on conflict (account_id) do nothing;
