-- Claims by class and by keys, and settlements that give keys back. Messages of a queue lie in lanes, one for each
-- class; within a lane the one that is due first goes first.
-- Locks: `create index` keeps writes off each queue while it reads the table; `drop index` and the functions take
-- moments.

-- Not `strict` any more: a strict function of this form is called for each row instead of becoming part of the statement.
create or replace function spillway.command_of(message jsonb) returns uuid
language sql immutable parallel safe as $$
  select case
    when message ->> 'command' ~ '^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$'
    then (message ->> 'command')::uuid
  end
$$;

alter type spillway.claimed add attribute lane int, add attribute crashes int, add attribute alone_read_ct int;

drop function spillway.queue_claim(text, int, bigint);
do $$
declare
  w record;
begin
  for w in select queue from spillway.workload loop
    execute format('drop function spillway.%I(int, bigint)', 'queue_claim_' || w.queue);
    execute format('drop function spillway.%I(bigint[], int[])', 'queue_archive_' || w.queue);
    execute format('drop function spillway.%I(bigint[], int[], bigint[])', 'queue_postpone_' || w.queue);
    execute format('drop function spillway.%I(int)', 'queue_depth_' || w.queue);
  end loop;
end
$$;

-- A message without a lane of its own, such as one that was sent by hand, lies in its workload's.
create procedure spillway.make_lanes(queue text, class int)
language plpgsql as $make$
declare
  lane text := format($f$(case headers ->> 'lane' when '0' then 0 when '1' then 1 when '2' then 2 when '3' then 3 else %s end)$f$, class);
begin
  execute format('create index q_%1$s_lane_vt on pgmq.q_%1$s (%2$s, vt)', queue, lane);
  -- pgmq's statements compare vt with a volatile function, which no index serves; ours all name a lane.
  execute format('drop index if exists pgmq.q_%1$s_vt_idx', queue);

  -- What names a lane runs with its owner's rights: row security lets no condition that is not leak-proof choose an
  -- index, so with the caller's own each claim would read the whole table.
  --
  -- Up to p_limit due messages of up to p_look that are looked at. Without p_since a lane is searched from its
  -- beginning, where under an old snapshot the index is full of entries that nobody may remove yet; with it, from
  -- there. Then the ledger is read by the statement that takes: this function's statements have newer snapshots than
  -- the statement that calls it, which might not see a command that was committed, together with its message, in
  -- between. The nested loop is on purpose (`offset 0`): a plan cached while the ledger was small must not read all
  -- of it once it is large.
  --
  -- A last row without a message says how many were parked (read_ct), or when the next message is due (due_at).
  execute format($f$
    create function spillway.queue_claim_%1$s(
      p_limit int, p_look int, p_lease_ms bigint, p_since timestamptz[], p_lowest_first boolean)
    returns setof spillway.claimed
    language plpgsql rows 100 security definer set search_path = pg_catalog, pg_temp as $body$
    #variable_conflict use_column
    declare
      nth int;
      found_ids bigint[];
      found_dues timestamptz[];
      found_commands uuid[];
      found_limits jsonb[];
      found_gated boolean;
      ids bigint[] := '{}';
      dues timestamptz[] := '{}';
      commands uuid[] := '{}';
      limits jsonb[] := '{}';
      gated boolean := false;
      granted int[];
      parked int[] := '{}';
    begin
      if exists (select from spillway.limit_key k where k.key = 'queue:%1$s' and k.paused_at is not null) then
        return;
      end if;
      foreach nth in array case when p_lowest_first then '{3,2,1,0}'::int[] else '{0,1,2,3}'::int[] end loop
        select array_agg(m.msg_id), array_agg(m.vt), array_agg(m.command), array_agg(m.limits), bool_or(m.limits is not null)
        into found_ids, found_dues, found_commands, found_limits, found_gated
        from (
          select q.msg_id, q.vt, q.headers -> 'limits' as limits, spillway.command_of(q.message) as command
          from pgmq.q_%1$s q
          where %2$s = nth and q.vt >= coalesce(p_since[nth + 1], '-infinity') and q.vt <= statement_timestamp()
          order by q.vt limit p_look - cardinality(ids)
          for update skip locked
        ) m;
        if found_ids is not null then
          ids := ids || found_ids;
          dues := dues || found_dues;
          commands := commands || found_commands;
          limits := limits || found_limits;
          gated := gated or found_gated;
        end if;
        exit when cardinality(ids) >= p_look;
      end loop;

      if gated then
        select a.granted, a.parked into granted, parked
        from spillway.limit_admit('%1$s', ids, commands, limits, p_limit) a;
        if parked <> '{}' then
          update pgmq.q_%1$s q set vt = spillway.parked_until()
          where q.msg_id in (select ids[p.place] from unnest(parked) p (place));
        end if;
        select array_agg(ids[g.place] order by g.place), array_agg(dues[g.place] order by g.place) into ids, dues
        from unnest(granted) g (place);
      elsif cardinality(ids) > p_limit then
        ids := ids[1:p_limit];
        dues := dues[1:p_limit];
      end if;

      if ids <> '{}' then
        return query
        with taken as (
          update pgmq.q_%1$s q set vt = clock_timestamp() + p_lease_ms * interval '1 ms', read_ct = q.read_ct + 1
          from unnest(ids, dues) with ordinality due (msg_id, vt, place) where q.msg_id = due.msg_id
          returning q.msg_id, q.read_ct, greatest(due.vt, 'epoch') as due_at, coalesce(q.message, 'null') as message,
            due.place, %2$s as lane
        )
        select taken.msg_id, taken.read_ct, taken.due_at, clock_timestamp(), taken.message, k.id, k.kind,
          k.payload_version, k.payload, k.attempts, k.outcomes, k.blocked_times, k.blocked_since, k.finished_at,
          k.traceparent, k.tracestate, taken.lane, k.crashes, k.alone_read_ct
        from taken left join lateral (
          select k.id, k.kind, k.payload_version, k.payload, k.attempts, k.outcomes, k.blocked_times,
            k.blocked_since, k.finished_at, k.traceparent, k.tracestate, k.crashes, k.alone_read_ct
          from spillway.command k where k.id = spillway.command_of(taken.message) offset 0
        ) k on true
        order by taken.place;
      end if;
      if parked <> '{}' then
        return query select null::bigint, cardinality(parked), null::timestamptz, clock_timestamp(), null::jsonb,
          null::uuid, null::text, null::int, null::jsonb, null::int, null::int, null::int, null::timestamptz,
          null::timestamptz, null::text, null::text, null::int, null::int, null::int;
      elsif ids is null or ids = '{}' then
        return query select null::bigint, 0, min(n.vt), clock_timestamp(), null::jsonb,
          null::uuid, null::text, null::int, null::jsonb, null::int, null::int, null::int, null::timestamptz,
          null::timestamptz, null::text, null::text, null::int, null::int, null::int
        from unnest('{0,1,2,3}'::int[]) l (nth), lateral (
          select q.vt from pgmq.q_%1$s q
          where %2$s = l.nth and q.vt > statement_timestamp() and q.vt < spillway.parked_until()
          order by q.vt limit 1
        ) n;
      end if;
    end
    $body$ $f$, queue, lane);

  -- Makes messages due again after their pauses. They give their keys back.
  execute format($f$
    create function spillway.queue_postpone_%1$s(p_ids bigint[], p_cts int[], p_pauses_ms bigint[])
    returns table (msg_id bigint, due_at timestamptz)
    language plpgsql rows 100 as $body$
    #variable_conflict use_column
    declare
      ids bigint[];
      dues timestamptz[];
    begin
      with held as materialized (
        select q.msg_id, w.pause_ms from pgmq.q_%1$s q
        join unnest(p_ids, p_cts, p_pauses_ms) as w (id, ct, pause_ms) on q.msg_id = w.id and q.read_ct = w.ct
        order by q.msg_id for update of q
      ), moved as (
        update pgmq.q_%1$s q
        set vt = clock_timestamp() + held.pause_ms * interval '1 ms', read_ct = q.read_ct + 1
        from held where q.msg_id = held.msg_id
        returning q.msg_id, q.vt
      )
      select array_agg(moved.msg_id), array_agg(moved.vt) into ids, dues from moved;
      perform spillway.limit_release('%1$s', ids);
      return query select m.id, m.due from unnest(ids, dues) m (id, due);
    end
    $body$ $f$, queue);

  -- Moves messages to the archive. They give their keys back.
  execute format($f$
    create function spillway.queue_archive_%1$s(p_ids bigint[], p_cts int[])
    returns table (msg_id bigint, message jsonb, headers jsonb)
    language plpgsql rows 100 as $body$
    #variable_conflict use_column
    declare
      ids bigint[];
      messages jsonb[];
      all_headers jsonb[];
    begin
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
      select array_agg(gone.msg_id), array_agg(gone.message), array_agg(gone.headers)
      into ids, messages, all_headers from gone;
      perform spillway.limit_release('%1$s', ids);
      return query select m.id, m.message, m.headers from unnest(ids, messages, all_headers) m (id, message, headers);
    end
    $body$ $f$, queue);

  -- How much waits, counted no further than p_most in each lane, and since when the first of it is due.
  execute format($f$
    create function spillway.queue_depth_%1$s(p_most int)
    returns table (due bigint, later bigint, oldest_due_at timestamptz)
    language sql stable rows 1 security definer set search_path = pg_catalog, pg_temp as $body$
      select coalesce(sum(l.due), 0)::bigint, coalesce(sum(l.later), 0)::bigint, min(l.oldest)
      from unnest('{0,1,2,3}'::int[]) n (nth), lateral (select
        (select count(*) from (select from pgmq.q_%1$s q where %2$s = n.nth and q.vt <= statement_timestamp() limit p_most) c) as due,
        (select count(*) from (select from pgmq.q_%1$s q where %2$s = n.nth and q.vt > statement_timestamp() limit p_most) c) as later,
        (select min(q.vt) from pgmq.q_%1$s q where %2$s = n.nth and q.vt <= statement_timestamp()) as oldest
      ) l
    $body$ $f$, queue, lane);

  -- Calls parked messages; answers how many heard. One whose row somebody holds at this moment is left alone, and one
  -- that is gone leaves its line.
  execute format($f$
    create function spillway.queue_wake_%1$s(p_ids bigint[]) returns bigint
    language plpgsql as $body$
    declare
      n bigint;
    begin
      delete from spillway.limit_wait w
      where w.queue = '%1$s' and w.msg_id = any (p_ids) and not exists (select from pgmq.q_%1$s q where q.msg_id = w.msg_id);
      with parked as materialized (
        select q.msg_id from pgmq.q_%1$s q
        where q.msg_id = any (p_ids) and q.vt = spillway.parked_until()
        order by q.msg_id for update skip locked
      ), due as (
        update pgmq.q_%1$s q set vt = clock_timestamp() from parked where q.msg_id = parked.msg_id returning q.msg_id
      )
      update spillway.limit_wait w set woken_at = clock_timestamp() from due where w.queue = '%1$s' and w.msg_id = due.msg_id;
      get diagnostics n = row_count;
      return n;
    end
    $body$ $f$, queue);

  -- True while the claim may still be at work.
  execute format($f$
    create function spillway.queue_held_%1$s(p_id bigint, p_ct int) returns boolean
    language sql stable as $body$
      select exists (select from pgmq.q_%1$s q where q.msg_id = p_id and q.read_ct = p_ct and q.vt > clock_timestamp())
    $body$ $f$, queue);

  -- Those of the messages that are in the queue.
  execute format($f$
    create function spillway.queue_present_%1$s(p_ids bigint[]) returns bigint[]
    language sql stable as $body$
      select coalesce(array_agg(q.msg_id), '{}') from pgmq.q_%1$s q where q.msg_id = any (p_ids)
    $body$ $f$, queue);

  -- Makes due what is parked and in no line; answers how many that were.
  execute format($f$
    create function spillway.queue_unpark_%1$s() returns bigint
    language plpgsql security definer set search_path = pg_catalog, pg_temp as $body$
    declare
      n bigint;
    begin
      with lost as materialized (
        select q.msg_id from unnest('{0,1,2,3}'::int[]) l (nth), lateral (
          select q.msg_id from pgmq.q_%1$s q
          where %2$s = l.nth and q.vt = spillway.parked_until()
            and not exists (select from spillway.limit_wait w where w.queue = '%1$s' and w.msg_id = q.msg_id)
          order by q.msg_id limit 1000
          for update skip locked
        ) q
      )
      update pgmq.q_%1$s q set vt = clock_timestamp() from lost where q.msg_id = lost.msg_id;
      get diagnostics n = row_count;
      return n;
    end
    $body$ $f$, queue, lane);
end
$make$;

-- One name for all queues, which picks the queue's own function by a plain comparison.
create or replace procedure spillway.make_queue_dispatch()
language plpgsql as $make$
declare
  part record;
  branches text;
begin
  for part in
    select name, parameters, arguments, answer, options, how from (values
      ('queue_claim', 'p_limit int, p_look int, p_lease_ms bigint, p_since timestamptz[], p_lowest_first boolean',
        'p_limit, p_look, p_lease_ms, p_since, p_lowest_first', 'setof spillway.claimed', 'rows 100',
        'query select msg_id, read_ct, due_at, claimed_at, message, id, kind, payload_version, payload, attempts,
          outcomes, blocked_times, blocked_since, finished_at, traceparent, tracestate, lane, crashes, alone_read_ct from'),
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
      ('queue_lock', 'p_id bigint, p_ct int', 'p_id, p_ct', 'boolean', '', ''),
      ('queue_wake', 'p_ids bigint[]', 'p_ids', 'bigint', '', ''),
      ('queue_held', 'p_id bigint, p_ct int', 'p_id, p_ct', 'boolean', '', ''),
      ('queue_present', 'p_ids bigint[]', 'p_ids', 'bigint[]', '', ''),
      ('queue_unpark', '', '', 'bigint', '', '')
    ) as f (name, parameters, arguments, answer, options, how)
  loop
    select string_agg(
      format('when %L then return %s spillway.%I(%s);', w.queue, part.how, part.name || '_' || w.queue, part.arguments),
      E'\n' order by w.queue) into branches from spillway.workload w;
    execute format($f$
      create or replace function spillway.%I(%s) returns %s
      language plpgsql %s as $body$
      #variable_conflict use_column
      begin
        case p_queue
        %s
        else raise exception 'no queue is called %%', p_queue using errcode = 'undefined_table';
        end case;
      end
      $body$ $f$, part.name, concat_ws(', ', 'p_queue text', nullif(part.parameters, '')), part.answer, part.options, branches);
  end loop;
end
$make$;

do $$
declare
  w record;
begin
  for w in select queue, class from spillway.workload order by queue loop
    call spillway.make_lanes(w.queue, w.class);
  end loop;
  call spillway.make_queue_dispatch();
end
$$;

-- As workers of the version before claim.
create function spillway.queue_claim(p_queue text, p_limit int, p_lease_ms bigint)
returns setof spillway.claimed
language sql rows 100 as $$
  select c.msg_id, c.read_ct, c.due_at, c.claimed_at, c.message, c.id, c.kind, c.payload_version, c.payload, c.attempts,
    c.outcomes, c.blocked_times, c.blocked_since, c.finished_at, c.traceparent, c.tracestate, c.lane, c.crashes,
    c.alone_read_ct
  from spillway.queue_claim(p_queue, p_limit, greatest(p_limit, 200), p_lease_ms, null, false) c
  where c.msg_id is not null
$$;

do $$
declare
  f record;
begin
  for f in
    select p.oid::regprocedure as signature, p.prokind, p.proname
    from pg_proc p where p.pronamespace = 'spillway'::regnamespace
      and (p.proname like 'queue\_%' or p.proname like 'limit%' or p.proname in ('parked_until', 'make_lanes'))
  loop
    if f.prokind = 'p' then
      execute format('revoke all on procedure %s from public', f.signature);
    else
      execute format('revoke all on function %s from public', f.signature);
      execute format('grant execute on function %s to spillway_worker', f.signature);
      if f.proname like 'queue\_depth%' or f.proname like 'limit%' then
        execute format('grant execute on function %s to spillway_operator', f.signature);
      end if;
    end if;
  end loop;
  grant execute on function spillway.limits_of(text, jsonb) to spillway_gateway, spillway_operator;
end
$$;
