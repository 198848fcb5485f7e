select k.account_id
from unnest($1::text[], $2::uuid[]) as a (user_id, account_id)
join spillway.snaptrade_account k on k.account_id = a.account_id and k.user_id <> a.user_id
limit 1;
