-- Rows are locked in the order of their ids. What is closed stays closed; an event older than the last one applied
-- changes nothing.
with concerned as materialized (
  select a.account_id from spillway.snaptrade_account a
  where (a.account_id = $1 or a.connection_id = $2 or a.user_id = $3)
    and a.state <> 'closed' and (a.state_at is null or a.state_at <= $6)
  order by a.account_id for update
)
update spillway.snaptrade_account a
set state = $4, state_reason = $5, state_at = $6, updated_at = clock_timestamp()
from concerned where a.account_id = concerned.account_id
returning a.account_id;
