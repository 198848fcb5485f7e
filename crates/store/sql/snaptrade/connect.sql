-- Rows are locked in the order of their ids.
with concerned as materialized (
  select a.account_id, l.connection_id from spillway.snaptrade_account a
  join (select distinct on (account_id) account_id, connection_id
    from unnest($1::uuid[], $2::uuid[]) as l (account_id, connection_id)) l on l.account_id = a.account_id
  where a.connection_id is distinct from l.connection_id
  order by a.account_id for update of a
)
update spillway.snaptrade_account a set connection_id = concerned.connection_id, updated_at = clock_timestamp()
from concerned where a.account_id = concerned.account_id;
