-- Who keeps dead rows from being removed: a view of other sessions that is small enough to be given to our roles.
-- Locks: new objects only.

-- What holds the oldest snapshots of this database: sessions, prepared transactions and replication slots. A session
-- that belongs to a role which the owner of this function may not look at has no state and no times, only its pid, its
-- names and how many transactions its snapshot is old.
-- Of a statement only what stands before its first literal is shown, and no number: literals are payloads.
create function spillway.snapshot_holders()
returns table (
  kind text, pid int, login text, application text, state text, transactions int, held_seconds double precision,
  idle_seconds double precision, statement text)
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select 'session', a.pid, a.usename::text, a.application_name, a.state,
    greatest(age(a.backend_xmin), age(a.backend_xid), 0),
    extract(epoch from clock_timestamp() - a.xact_start)::double precision,
    case when a.state like 'idle in transaction%'
      then extract(epoch from clock_timestamp() - a.state_change)::double precision end,
    case when a.state is not null then left(regexp_replace(regexp_replace(
      substring(a.query from '^(?:[^''$]|\$[0-9])*'), '\m[0-9]\w*', '?', 'g'), '\s+', ' ', 'g'), 120) end
  from pg_stat_activity a
  where (a.datname = current_database() or a.datname is null) and a.pid <> pg_backend_pid()
    -- Vacuum's own snapshot holds nobody up. Of a hidden session not even the type is told.
    and a.backend_type is distinct from 'autovacuum worker'
    and (a.backend_xmin is not null or a.backend_xid is not null or a.state like 'idle in transaction%')
  union all
  select 'prepared transaction', null, p.owner::text, p.gid, null, age(p.transaction),
    extract(epoch from clock_timestamp() - p.prepared)::double precision, null, null
  from pg_prepared_xacts p where p.database = current_database()
  union all
  select 'replication slot', s.active_pid, null, s.slot_name::text, null, greatest(age(s.xmin), 0), null, null, null
  from pg_replication_slots s where s.xmin is not null
$$;

-- True where the function above sees the times of every role's sessions.
create function spillway.sees_all_sessions() returns boolean
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select pg_has_role(current_user, 'pg_read_all_stats', 'usage')
$$;

revoke all on function spillway.snapshot_holders(), spillway.sees_all_sessions() from public;
grant execute on function spillway.snapshot_holders(), spillway.sees_all_sessions()
  to spillway_gateway, spillway_worker, spillway_operator;
