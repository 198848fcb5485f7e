select u.user_id, u.sealed_secret, a.state
from spillway.snaptrade_account a join spillway.snaptrade_user u on u.user_id = a.user_id
where a.account_id = $1;
