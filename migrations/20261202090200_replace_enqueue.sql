-- The one way into the ledger and the queues now counts the syncs that callers put in, as intake counts those that
-- webhooks ask for; and messages name their lane and their keys.
-- Locks: none but the functions' own rows.

-- The headers of a command's message: where it comes from, its lane, and the keys that it needs.
create function spillway.headers_of(
  traceparent text, tracestate text, correlation_id text, class smallint, workload text, payload jsonb) returns jsonb
language sql immutable parallel safe as $$
  select jsonb_strip_nulls(jsonb_build_object('traceparent', traceparent, 'tracestate', tracestate,
    'x-correlation-id', correlation_id, 'lane', class, 'limits', spillway.limits_of(workload, payload)))
$$;
revoke all on function spillway.headers_of(text, text, text, smallint, text, jsonb) from public;
grant execute on function spillway.headers_of(text, text, text, smallint, text, jsonb)
  to spillway_gateway, spillway_operator;

-- Takes an array of commands as the gateway builds them (see `store::command`) and answers, for each:
--   new        the ledger row and the message were written,
--   replayed   the same command was accepted before,
--   conflict   the key was used before for other content.
-- `id` is the command that the key stands for, whichever call made it.
create or replace function spillway.enqueue(p_commands jsonb)
returns table (requested uuid, id uuid, outcome text)
language plpgsql rows 100 as $$
#variable_conflict use_column
declare
  made uuid[];
  batch record;
begin
  -- One order for everybody: two gateways that write the same keys in different orders would deadlock. Of commands
  -- with one key the oldest is the one that counts.
  with wanted as materialized (
    select c.id, c.workload, c.kind, c.version, c.idempotency_key, c.payload, c.actor_id, c.actor_type,
      c.scope, c.decision, c.class, c.not_before, c.snapshots, c.expected_revision, c.traceparent,
      c.tracestate, c.correlation_id
    from jsonb_to_recordset(p_commands) as c (
      id uuid, workload text, kind text, version int, idempotency_key text, payload jsonb, actor_id text,
      actor_type text, scope text, decision text, class smallint, not_before timestamptz, snapshots text[],
      expected_revision bigint, traceparent text, tracestate text, correlation_id text)
  ), inserted as (
    insert into spillway.command (
      id, workload, kind, payload_version, idempotency_key, request_hash, payload, actor_id, actor_type, scope,
      decision, class, queue, lease_seconds, max_attempts, status, next_attempt_at, snapshots,
      expected_revision, traceparent, tracestate, correlation_id)
    select n.id, n.workload, n.kind, n.version, n.idempotency_key,
      spillway.request_hash(n.kind, n.version, n.payload), n.payload, n.actor_id, n.actor_type, n.scope,
      n.decision, n.class, w.queue, w.lease_seconds, w.max_attempts,
      case when n.not_before > clock_timestamp() then 'accepted' else 'queued' end, n.not_before,
      coalesce(n.snapshots, '{}'), n.expected_revision, n.traceparent, n.tracestate, n.correlation_id
    from wanted n join spillway.workload w on w.kind = n.workload
    order by n.workload collate "C", n.scope collate "C", n.idempotency_key collate "C", n.id
    on conflict on constraint command_identity do nothing
    returning id
  )
  select coalesce(array_agg(i.id), '{}') into made from inserted i;

  for batch in
    select w.queue, coalesce(c.not_before, clock_timestamp()) as due,
      array_agg(jsonb_build_object('command', c.id, 'kind', c.kind, 'version', c.version)) as messages,
      array_agg(spillway.headers_of(c.traceparent, c.tracestate, c.correlation_id, c.class, c.workload, c.payload))
        as headers
    from jsonb_to_recordset(p_commands) as c (
      id uuid, workload text, kind text, version int, payload jsonb, class smallint, not_before timestamptz,
      traceparent text, tracestate text, correlation_id text)
    join spillway.workload w on w.kind = c.workload
    where c.id = any (made)
    group by w.queue, c.not_before
  loop
    perform pgmq.send_batch(batch.queue, batch.messages, batch.headers, batch.due);
  end loop;

  -- A sync that is put in as a command of its own is a request like an event's: without this, its run would find
  -- everything done already. What a webhook asked for is counted before its command is made. No later event becomes
  -- part of it, since its caller may take it back; and one for later is no request before it starts.
  -- `offset 0` keeps this one look-up a command, whatever the planner knew of the table when it made the plan.
  if exists (
    select from unnest(made) as m (id)
    where not exists (select from spillway.account_sync w where w.waiting_command = m.id offset 0))
  then
    insert into spillway.account_sync as s (work_type, account_id, requested)
    select c.payload ->> 'work_type', a.account_id, count(*)
    from jsonb_to_recordset(p_commands) as c (id uuid, workload text, payload jsonb)
    join spillway.command k on k.id = c.id and k.status = 'queued'
    -- Of any other payload nothing is counted; its run says what is wrong with it.
    join spillway.snaptrade_account a on a.account_id = case
      when c.payload ->> 'account_id' ~ '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' then (c.payload ->> 'account_id')::uuid
    end
    where c.workload = 'snaptrade-account-sync' and c.id = any (made)
      and c.payload ->> 'work_type' in ('holdings', 'transactions')
      and not exists (select from spillway.account_sync w where w.waiting_command = c.id)
    group by 1, 2
    order by 1, 2
    on conflict (work_type, account_id) do update set requested = s.requested + excluded.requested;
  end if;

  return query select m.id, m.id, 'new' from unnest(made) as m (id);
  if cardinality(made) = jsonb_array_length(p_commands) then
    return;
  end if;
  -- A statement of its own: what a concurrent transaction committed while the insert waited for it is
  -- invisible to the insert's snapshot and visible to this one's. `limit` is there for the same reason as `offset`.
  return query
  select c.id, k.id,
    case
      when k.id = c.id then 'new'
      when k.request_hash = spillway.request_hash(c.kind, c.version, c.payload) then 'replayed'
      else 'conflict'
    end
  from jsonb_to_recordset(p_commands) as c (
    id uuid, workload text, kind text, version int, idempotency_key text, payload jsonb, scope text)
  cross join lateral (
    select k.id, k.request_hash from spillway.command k
    where k.workload = c.workload and k.scope = c.scope and k.idempotency_key = c.idempotency_key
    limit 1) k
  where c.id <> all (made);
end
$$;

-- An immutable function is not inlined where its body is only stable, and a call costs more than the hash.
alter function spillway.request_hash(text, int, jsonb) stable;
