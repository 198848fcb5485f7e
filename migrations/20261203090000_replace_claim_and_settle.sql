-- What a command costs on its way: claims that look at each message once, successes in one statement, and ledger rows
-- that change in place.
-- Locks: `add column … generated` writes command anew and keeps everybody off it meanwhile; `create index` keeps writes
-- off it; the rest takes moments.

-- The status where a list has to find it by its index. A command that goes from queued to succeeded has none, so that
-- its row changes in place and no index of the ledger is written. Commands that are queued are found by their messages.
alter table spillway.command
  add column listed text generated always as (case when status not in ('queued', 'succeeded') then status end) stored;
drop index spillway.command_open;
drop index spillway.command_unhappy;
create index command_listed on spillway.command (listed, id) where listed is not null;
-- Room for one change of each row on its page.
alter table spillway.command set (fillfactor = 50);

-- The ids that messages name, in the same order. What is no id costs all of them a slower look.
create function spillway.commands_named(names text[]) returns uuid[]
language plpgsql immutable as $$
begin
  return names::uuid[];
exception when invalid_text_representation then
  return array(select spillway.command_of(jsonb_build_object('command', n.name))
    from unnest(names) with ordinality n (name, place) order by n.place);
end
$$;

-- Commands that wait in queues, of each queue the p_most newest messages.
create function spillway.queue_newest(p_workload text, p_most int) returns setof uuid
language plpgsql stable security definer set search_path = pg_catalog, pg_temp as $$
declare
  w record;
begin
  for w in select queue from spillway.workload where p_workload is null or kind = p_workload loop
    return query execute format(
      'select unnest(spillway.commands_named(array(
        select q.message ->> ''command'' from pgmq.q_%s q order by q.msg_id desc limit $1)))', w.queue) using p_most;
  end loop;
end
$$;

create procedure spillway.make_claim_and_succeed(queue text, class int)
language plpgsql as $make$
declare
  lane text := format($f$(case headers ->> 'lane' when '0' then 0 when '1' then 1 when '2' then 2 when '3' then 3 else %s end)$f$, class);
begin
  -- Each claim moves a row.
  execute format('alter table pgmq.q_%s set (fillfactor = 50)', queue);

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
    create or replace function spillway.queue_claim_%1$s(
      p_limit int, p_look int, p_lease_ms bigint, p_since timestamptz[], p_lowest_first boolean)
    returns setof spillway.claimed
    language plpgsql rows 100 security definer set search_path = pg_catalog, pg_temp as $body$
    #variable_conflict use_column
    declare
      nth int;
      found_ids bigint[];
      found_dues timestamptz[];
      found_names text[];
      found_limits jsonb[];
      found_gated boolean;
      ids bigint[] := '{}';
      dues timestamptz[] := '{}';
      names text[] := '{}';
      lanes int[] := '{}';
      limits jsonb[] := '{}';
      gated boolean := false;
      commands uuid[];
      granted int[];
      parked int[] := '{}';
    begin
      if exists (select from spillway.limit_key k where k.key = 'queue:%1$s' and k.paused_at is not null) then
        return;
      end if;
      foreach nth in array case when p_lowest_first then '{3,2,1,0}'::int[] else '{0,1,2,3}'::int[] end loop
        select array_agg(m.msg_id), array_agg(m.vt), array_agg(m.name), array_agg(m.limits), bool_or(m.limits is not null)
        into found_ids, found_dues, found_names, found_limits, found_gated
        from (
          select q.msg_id, q.vt, q.headers -> 'limits' as limits, q.message ->> 'command' as name
          from pgmq.q_%1$s q
          where %2$s = nth and q.vt >= coalesce(p_since[nth + 1], '-infinity') and q.vt <= statement_timestamp()
          order by q.vt limit p_look - cardinality(ids)
          for update skip locked
        ) m;
        if found_ids is not null then
          ids := ids || found_ids;
          dues := dues || found_dues;
          names := names || found_names;
          lanes := lanes || array_fill(nth, array[cardinality(found_ids)]);
          limits := limits || found_limits;
          gated := gated or found_gated;
        end if;
        exit when cardinality(ids) >= p_look;
      end loop;
      commands := spillway.commands_named(names);

      if gated then
        select a.granted, a.parked into granted, parked
        from spillway.limit_admit('%1$s', ids, commands, limits, p_limit) a;
        if parked <> '{}' then
          update pgmq.q_%1$s q set vt = spillway.parked_until()
          where q.msg_id in (select ids[p.place] from unnest(parked) p (place));
        end if;
        select array_agg(ids[g.place] order by g.place), array_agg(dues[g.place] order by g.place),
          array_agg(commands[g.place] order by g.place), array_agg(lanes[g.place] order by g.place)
        into ids, dues, commands, lanes
        from unnest(granted) g (place);
      elsif cardinality(ids) > p_limit then
        ids := ids[1:p_limit];
        dues := dues[1:p_limit];
        commands := commands[1:p_limit];
        lanes := lanes[1:p_limit];
      end if;

      if ids <> '{}' then
        return query
        with taken as (
          update pgmq.q_%1$s q set vt = clock_timestamp() + p_lease_ms * interval '1 ms', read_ct = q.read_ct + 1
          from unnest(ids, dues, commands, lanes) with ordinality due (msg_id, vt, command, lane, place)
          where q.msg_id = due.msg_id
          returning q.msg_id, q.read_ct, greatest(due.vt, 'epoch') as due_at, coalesce(q.message, 'null') as message,
            due.command, due.lane, due.place
        )
        select taken.msg_id, taken.read_ct, taken.due_at, clock_timestamp(), taken.message, k.id, k.kind,
          k.payload_version, k.payload, k.attempts, k.outcomes, k.blocked_times, k.blocked_since, k.finished_at,
          k.traceparent, k.tracestate, taken.lane, k.crashes, k.alone_read_ct
        from taken left join lateral (
          select k.id, k.kind, k.payload_version, k.payload, k.attempts, k.outcomes, k.blocked_times,
            k.blocked_since, k.finished_at, k.traceparent, k.tracestate, k.crashes, k.alone_read_ct
          from spillway.command k where k.id = taken.command offset 0
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

  -- Ends messages whose runs succeeded, with their commands; answers which ones those were, and which of them have keys
  -- to give back. By number, as all who write more than one message. Its plan is made once, maybe while the tables are
  -- small, and serves when they are large: each row is looked up by its index. Nothing else may run in here: what it
  -- called would be planned in the same way.
  execute format($f$
    create or replace function spillway.queue_succeed_%1$s(
      p_ids bigint[], p_cts int[], p_commands uuid[], p_started timestamptz[], p_results jsonb[], p_requests text[],
      out ids bigint[], out gated bigint[])
    language plpgsql
    set plan_cache_mode = force_generic_plan set enable_hashjoin = off set enable_mergejoin = off set enable_seqscan = off
    as $body$
    #variable_conflict use_column
    begin
      with done as materialized (
        select d.id, d.ct, d.command, d.started_at, d.result, d.requests
        from unnest(p_ids, p_cts, p_commands, p_started, p_results, p_requests)
          d (id, ct, command, started_at, result, requests)
        order by d.id
      ), gone as (
        delete from pgmq.q_%1$s q using done where q.msg_id = done.id and q.read_ct = done.ct
        returning q.msg_id, q.read_ct, q.enqueued_at, q.vt, q.message, q.headers, done.command, done.started_at,
          done.result, done.requests
      ), kept as (
        insert into pgmq.a_%1$s (msg_id, read_ct, enqueued_at, vt, message, headers)
        select gone.msg_id, gone.read_ct, gone.enqueued_at, gone.vt, gone.message, gone.headers from gone
      ), closed as (
        update spillway.command k
        set status = 'succeeded', attempts = k.attempts + 1, outcomes = k.outcomes + 1,
          started_at = coalesce(k.started_at, gone.started_at), finished_at = clock_timestamp(), result = gone.result,
          blocked_reason = null, blocked_until = null, next_attempt_at = null, retry_class = null, failure_code = null,
          failure_message = null,
          provider_request_ids = k.provider_request_ids || string_to_array(nullif(gone.requests, ''), ' ')
        from gone where k.id = gone.command and k.finished_at is null
      )
      select array_agg(gone.msg_id), array_agg(gone.msg_id) filter (where gone.headers ? 'limits') into ids, gated from gone;
    end
    $body$ $f$, queue);
end
$make$;

do $$
declare
  w record;
  branches text;
begin
  for w in select queue, class from spillway.workload order by queue loop
    call spillway.make_claim_and_succeed(w.queue, w.class);
    execute format('revoke all on function spillway.%I(bigint[], int[], uuid[], timestamptz[], jsonb[], text[]) from public', 'queue_succeed_' || w.queue);
    execute format('grant execute on function spillway.%I(bigint[], int[], uuid[], timestamptz[], jsonb[], text[]) to spillway_worker', 'queue_succeed_' || w.queue);
  end loop;
  select string_agg(
    format('when %L then select s.ids, s.gated into ids, gated from spillway.%I(p_ids, p_cts, p_commands, p_started, p_results, p_requests) s;', q.queue, 'queue_succeed_' || q.queue),
    E'\n' order by q.queue) into branches from spillway.workload q;
  execute format($f$
    create function spillway.queue_succeed(
      p_queue text, p_ids bigint[], p_cts int[], p_commands uuid[], p_started timestamptz[], p_results jsonb[], p_requests text[])
    returns bigint[]
    language plpgsql as $body$
    declare
      ids bigint[];
      gated bigint[];
    begin
      case p_queue
      %s
      else raise exception 'no queue is called %%', p_queue using errcode = 'undefined_table';
      end case;
      if gated is not null then
        perform spillway.limit_release(p_queue, gated);
      end if;
      return ids;
    end
    $body$ $f$, branches);
end
$$;
revoke all on procedure spillway.make_claim_and_succeed(text, int) from public;
revoke all on function spillway.queue_newest(text, int) from public;
grant execute on function spillway.queue_newest(text, int) to spillway_gateway, spillway_operator;
revoke all on function spillway.commands_named(text[]) from public;
revoke all on function spillway.queue_succeed(text, bigint[], int[], uuid[], timestamptz[], jsonb[], text[]) from public;
grant execute on function spillway.queue_succeed(text, bigint[], int[], uuid[], timestamptz[], jsonb[], text[]) to spillway_worker;
