-- What a worker does to a queue table: claim, extend, postpone, archive and lock, each fenced by
-- (msg_id, read_ct). pgmq's own set_vt, archive and delete check no owner, and its read walks every parked row.
-- read_ct grows by one with each claim and by one with each postponement, so a lease ends with its first use: a
-- heartbeat or a repeated write that comes after it finds nothing.
-- Locks: new objects only.

-- The command that a message names; null for a message that names none.
create function spillway.command_of(message jsonb) returns uuid
language sql immutable strict parallel safe as $$
  select case
    when message ->> 'command' ~ '^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$'
    then (message ->> 'command')::uuid
  end
$$;

-- A claimed message with what the ledger knows of its command.
create type spillway.claimed as (
  msg_id bigint, read_ct int, due_at timestamptz, claimed_at timestamptz, message jsonb, id uuid, kind text,
  payload_version int, payload jsonb, attempts int, outcomes int, blocked_times int, blocked_since timestamptz,
  finished_at timestamptz, traceparent text, tracestate text
);

-- A queue is one table, so each queue has functions of its own whose plans are cached; this makes them.
create procedure spillway.make_queue_functions(queue text)
language plpgsql as $make$
begin
  -- Due messages in order of their due time, along the index on vt: a stable time function can be an index
  -- condition, pgmq's clock_timestamp() can't. Their commands are read by the same statement: this function's
  -- statements have newer snapshots than the statement that calls it, which might not see a command that was
  -- committed, together with its message, in between. The nested loop is on purpose (`offset 0`): a plan cached
  -- while the ledger was small must not read all of it once it is large.
  execute format($f$
    create function spillway.queue_claim_%1$s(p_limit int, p_lease_ms bigint)
    returns setof spillway.claimed
    language plpgsql rows 100 as $body$
    #variable_conflict use_column
    begin
      return query
      with due as materialized (
        select q.msg_id, q.vt from pgmq.q_%1$s q
        where q.vt <= statement_timestamp() order by q.vt limit p_limit
        for update skip locked
      ), taken as (
        update pgmq.q_%1$s q set vt = clock_timestamp() + p_lease_ms * interval '1 ms', read_ct = q.read_ct + 1
        from due where q.msg_id = due.msg_id
        returning q.msg_id, q.read_ct, greatest(due.vt, 'epoch') as due_at, coalesce(q.message, 'null') as message
      )
      select taken.msg_id, taken.read_ct, taken.due_at, clock_timestamp(), taken.message, k.id, k.kind,
        k.payload_version, k.payload, k.attempts, k.outcomes, k.blocked_times, k.blocked_since, k.finished_at,
        k.traceparent, k.tracestate
      from taken left join lateral (
        select k.id, k.kind, k.payload_version, k.payload, k.attempts, k.outcomes, k.blocked_times,
          k.blocked_since, k.finished_at, k.traceparent, k.tracestate
        from spillway.command k where k.id = spillway.command_of(taken.message) offset 0
      ) k on true;
    end
    $body$ $f$, queue);

  -- Renews leases. A row that somebody else has locked at this moment is answered as held but not renewed,
  -- so that one slow transaction never stops the beats; a row that is missing in the answer is lost.
  execute format($f$
    create function spillway.queue_extend_%1$s(p_ids bigint[], p_cts int[], p_lease_ms bigint)
    returns table (msg_id bigint, read_ct int, renewed boolean)
    language plpgsql rows 100 as $body$
    #variable_conflict use_column
    declare
      done bigint[];
    begin
      with held as materialized (
        select q.msg_id from pgmq.q_%1$s q
        join unnest(p_ids, p_cts) as w (id, ct) on q.msg_id = w.id and q.read_ct = w.ct
        order by q.msg_id for update of q skip locked
      ), kept as (
        update pgmq.q_%1$s q set vt = clock_timestamp() + p_lease_ms * interval '1 ms' from held where q.msg_id = held.msg_id
        returning q.msg_id
      )
      select coalesce(array_agg(kept.msg_id), '{}') into done from kept;
      return query
      select q.msg_id, q.read_ct, q.msg_id = any (done) from pgmq.q_%1$s q
      join unnest(p_ids, p_cts) as w (id, ct) on q.msg_id = w.id and q.read_ct = w.ct;
    end
    $body$ $f$, queue);

  -- Makes messages due again after their pauses.
  execute format($f$
    create function spillway.queue_postpone_%1$s(p_ids bigint[], p_cts int[], p_pauses_ms bigint[])
    returns table (msg_id bigint, due_at timestamptz)
    language plpgsql rows 100 as $body$
    #variable_conflict use_column
    begin
      return query
      with held as materialized (
        select q.msg_id, w.pause_ms from pgmq.q_%1$s q
        join unnest(p_ids, p_cts, p_pauses_ms) as w (id, ct, pause_ms) on q.msg_id = w.id and q.read_ct = w.ct
        order by q.msg_id for update of q
      )
      update pgmq.q_%1$s q
      set vt = clock_timestamp() + held.pause_ms * interval '1 ms', read_ct = q.read_ct + 1
      from held where q.msg_id = held.msg_id
      returning q.msg_id, q.vt;
    end
    $body$ $f$, queue);

  -- Moves messages to the archive.
  execute format($f$
    create function spillway.queue_archive_%1$s(p_ids bigint[], p_cts int[])
    returns table (msg_id bigint, message jsonb, headers jsonb)
    language plpgsql rows 100 as $body$
    #variable_conflict use_column
    begin
      return query
      with held as materialized (
        select q.msg_id from pgmq.q_%1$s q
        join unnest(p_ids, p_cts) as w (id, ct) on q.msg_id = w.id and q.read_ct = w.ct
        order by q.msg_id for update of q
      ), gone as (
        delete from pgmq.q_%1$s q using held where q.msg_id = held.msg_id
        returning q.msg_id, q.read_ct, q.enqueued_at, q.vt, q.message, q.headers
      ), kept as (
        insert into pgmq.a_%1$s (msg_id, read_ct, enqueued_at, vt, message, headers)
        select gone.msg_id, gone.read_ct, gone.enqueued_at, gone.vt, gone.message, gone.headers from gone
      )
      select gone.msg_id, gone.message, gone.headers from gone;
    end
    $body$ $f$, queue);

  -- Holds the lease until the transaction ends: true while it is still the caller's.
  execute format($f$
    create function spillway.queue_lock_%1$s(p_id bigint, p_ct int) returns boolean
    language plpgsql as $body$
    begin
      perform from pgmq.q_%1$s q where q.msg_id = p_id and q.read_ct = p_ct for update;
      return found;
    end
    $body$ $f$, queue);

  -- How much waits, counted no further than p_most, and since when the first of it is due.
  execute format($f$
    create function spillway.queue_depth_%1$s(p_most int)
    returns table (due bigint, later bigint, oldest_due_at timestamptz)
    language plpgsql stable rows 1 as $body$
    #variable_conflict use_column
    begin
      return query select
        (select count(*) from (select from pgmq.q_%1$s q where q.vt <= statement_timestamp() limit p_most) c),
        (select count(*) from (select from pgmq.q_%1$s q where q.vt > statement_timestamp() limit p_most) c),
        (select min(q.vt) from pgmq.q_%1$s q where q.vt <= statement_timestamp());
    end
    $body$ $f$, queue);
end
$make$;

-- One name for all queues, which picks the queue's own function by a plain comparison.
create procedure spillway.make_queue_dispatch()
language plpgsql as $make$
declare
  part record;
  branches text;
begin
  for part in
    select name, parameters, arguments, answer, options, how from (values
      ('queue_claim', 'p_limit int, p_lease_ms bigint', 'p_limit, p_lease_ms', 'setof spillway.claimed', 'rows 100',
        'query select msg_id, read_ct, due_at, claimed_at, message, id, kind, payload_version, payload, attempts,
          outcomes, blocked_times, blocked_since, finished_at, traceparent, tracestate from'),
      ('queue_extend', 'p_ids bigint[], p_cts int[], p_lease_ms bigint', 'p_ids, p_cts, p_lease_ms',
        'table (msg_id bigint, read_ct int, renewed boolean)', 'rows 100',
        'query select msg_id, read_ct, renewed from'),
      ('queue_postpone', 'p_ids bigint[], p_cts int[], p_pauses_ms bigint[]', 'p_ids, p_cts, p_pauses_ms',
        'table (msg_id bigint, due_at timestamptz)', 'rows 100', 'query select msg_id, due_at from'),
      ('queue_archive', 'p_ids bigint[], p_cts int[]', 'p_ids, p_cts',
        'table (msg_id bigint, message jsonb, headers jsonb)', 'rows 100',
        'query select msg_id, message, headers from'),
      ('queue_depth', 'p_most int', 'p_most', 'table (due bigint, later bigint, oldest_due_at timestamptz)',
        'rows 1', 'query select due, later, oldest_due_at from'),
      ('queue_lock', 'p_id bigint, p_ct int', 'p_id, p_ct', 'boolean', '', '')
    ) as f (name, parameters, arguments, answer, options, how)
  loop
    select string_agg(
      format('when %L then return %s spillway.%I(%s);', w.queue, part.how, part.name || '_' || w.queue, part.arguments),
      E'\n' order by w.queue) into branches from spillway.workload w;
    execute format($f$
      create or replace function spillway.%I(p_queue text, %s) returns %s
      language plpgsql %s as $body$
      #variable_conflict use_column
      begin
        case p_queue
        %s
        else raise exception 'no queue is called %%', p_queue using errcode = 'undefined_table';
        end case;
      end
      $body$ $f$, part.name, part.parameters, part.answer, part.options, branches);
  end loop;
end
$make$;

do $$
declare
  w record;
begin
  for w in select queue from spillway.workload order by queue loop
    call spillway.make_queue_functions(w.queue);
  end loop;
  call spillway.make_queue_dispatch();
end
$$;

-- Functions are executable by everyone until somebody says otherwise.
do $$
declare
  f record;
begin
  for f in
    select p.oid::regprocedure as signature, p.prokind, p.proname
    from pg_proc p where p.pronamespace = 'spillway'::regnamespace
  loop
    if f.prokind = 'p' then
      execute format('revoke all on procedure %s from public', f.signature);
    else
      execute format('revoke all on function %s from public', f.signature);
      if f.proname like 'queue\_%' or f.proname = 'command_of' then
        execute format('grant execute on function %s to spillway_worker', f.signature);
      end if;
      if f.proname like 'queue\_depth%' then
        execute format('grant execute on function %s to spillway_operator', f.signature);
      end if;
    end if;
  end loop;
  grant execute on function spillway.command_of(jsonb) to spillway_gateway, spillway_operator;
end
$$;
