-- Transactional enqueue for the business's own transactions and triggers, and the two wrappers that a worker
-- behind PostgREST needs. All are for `service_role` alone.
-- Locks: new objects only.

-- Time-ordered and unguessable: a random UUID with the time in front, and version 7 instead of 4.
create function spillway.uuid_v7() returns uuid
language sql volatile parallel safe as $$
  select encode(
    set_bit(set_bit(
      overlay(uuid_send(gen_random_uuid())
        placing substring(int8send(floor(extract(epoch from clock_timestamp()) * 1000)::bigint) from 3)
        from 1 for 6),
      52, 1), 53, 1),
    'hex')::uuid
$$;

-- Puts a command in within the caller's transaction: it exists if and only if that transaction commits. The same
-- key with the same payload answers the first command (`replayed`); with another payload it is refused.
create function spillway.submit(
  workload text, idempotency_key text, payload jsonb, actor text, scope text,
  not_before timestamptz default null, out command_id uuid, out replayed boolean)
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  answer record;
  spec record;
  refused text;
  trace text := replace(gen_random_uuid()::text, '-', '');
begin
  select w.kind, w.class into spec from spillway.workload w where w.kind = submit.workload;
  if not found then
    raise exception 'no workload is called %', coalesce(workload, 'null') using errcode = 'invalid_parameter_value';
  end if;
  refused := case
    when coalesce(idempotency_key, '') = '' or length(idempotency_key) > 200
    then 'idempotency_key must have 1 to 200 characters'
    when payload is null or payload = 'null' then 'payload must not be null'
    when coalesce(actor, '') = '' then 'actor must not be empty'
    when coalesce(scope, '') = '' then 'scope must not be empty'
    when not isfinite(not_before) then 'not_before must not be infinite'
  end;
  if refused is not null then
    raise exception '%', refused using errcode = 'invalid_parameter_value';
  end if;
  select e.id, e.outcome into answer from spillway.enqueue(jsonb_build_array(jsonb_build_object(
    'id', spillway.uuid_v7(), 'workload', spec.kind, 'kind', spec.kind, 'version', 1,
    'idempotency_key', idempotency_key, 'payload', payload, 'actor_id', actor, 'actor_type', 'service',
    'scope', scope, 'decision', 'database-role:' || session_user, 'class', spec.class, 'not_before', not_before,
    'snapshots', jsonb_build_array(),
    'traceparent', '00-' || trace || '-' || left(replace(gen_random_uuid()::text, '-', ''), 16) || '-01',
    'tracestate', '', 'correlation_id', trace))) e;
  if answer.outcome = 'conflict' then
    raise exception 'the idempotency key % was used before for another payload', idempotency_key
      using errcode = 'unique_violation', hint = 'command ' || answer.id;
  end if;
  command_id := answer.id;
  replayed := answer.outcome = 'replayed';
end
$$;

-- Claims messages of one of our queues for a worker that speaks RPC; the claim is fenced by read_ct. A message that
-- names a command brings its payload along, which such a worker can't read from the ledger; that of a command that
-- was taken back is archived and not handed out. The claim of a sync is its start: whatever event comes later needs
-- a command of its own, since nobody tells when such a worker begins to read.
create function public.pgmq_read(queue_name text, sleep_seconds int, n int)
returns table (msg_id bigint, read_ct int, message jsonb)
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  claimed record;
  started uuid[] := '{}';
begin
  if (sleep_seconds >= 1 and n between 1 and 1000) is not true then
    raise exception 'sleep_seconds must be at least 1, n from 1 to 1000' using errcode = 'invalid_parameter_value';
  end if;
  for claimed in
    select c.msg_id, c.read_ct, c.message, c.id, c.payload, c.finished_at
    from spillway.queue_claim(queue_name, n, sleep_seconds * 1000::bigint) c
  loop
    if claimed.finished_at is not null then
      perform from spillway.queue_archive(queue_name, array[claimed.msg_id], array[claimed.read_ct]);
    else
      msg_id := claimed.msg_id;
      read_ct := claimed.read_ct;
      message := case
        when claimed.id is null then claimed.message
        else claimed.message || jsonb_build_object('payload', claimed.payload)
      end;
      started := started || claimed.id;
      return next;
    end if;
  end loop;
  perform from spillway.account_sync s where s.waiting_command = any (started)
  order by s.work_type, s.account_id for update;
  update spillway.account_sync s set waiting_command = null where s.waiting_command = any (started);
end
$$;

-- Settles a message that `pgmq_read` claimed: archive and ledger together. False where the claim has gone to
-- another worker.
create function public.pgmq_archive(queue_name text, message_id bigint, read_ct int) returns boolean
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  done record;
begin
  select a.msg_id, spillway.command_of(a.message) as command into done
  from spillway.queue_archive(queue_name, array[message_id], array[pgmq_archive.read_ct]) a;
  if not found then
    return false;
  end if;
  update spillway.command k
  set status = 'succeeded', attempts = k.attempts + 1, outcomes = k.outcomes + 1,
    started_at = coalesce(k.started_at, clock_timestamp()), finished_at = clock_timestamp(), blocked_reason = null,
    blocked_until = null, next_attempt_at = null, retry_class = null, failure_code = null, failure_message = null
  where k.id = done.command and k.finished_at is null;
  return true;
end
$$;

revoke all on function
  spillway.uuid_v7(), spillway.submit(text, text, jsonb, text, text, timestamptz),
  public.pgmq_read(text, int, int), public.pgmq_archive(text, bigint, int) from public;
grant usage on schema spillway to service_role;
grant execute on function
  spillway.submit(text, text, jsonb, text, text, timestamptz),
  public.pgmq_read(text, int, int), public.pgmq_archive(text, bigint, int) to service_role;
-- Supabase grants every new function of `public` to its roles by default.
revoke all on function public.pgmq_read(text, int, int), public.pgmq_archive(text, bigint, int)
  from anon, authenticated;
