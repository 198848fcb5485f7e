-- One gate for every limit: exclusivity, caps, pauses and fairness between branches are keys with a cap.
-- Locks: new objects; `alter table` on command for a moment.
--
-- A message names its keys in its headers. A claim grants it all of them or none; a message that is refused waits,
-- parked, in the line of the key that refused it. Whoever gives a key back calls the next in line, under the same
-- lock. Everybody locks messages first, then keys in their order, then (without waiting) the messages to be woken.

create table spillway.limit_key (
  key text collate "C" primary key,
  -- How many messages may hold it at a time.
  cap int not null check (cap >= 0),
  -- A lower limit for now, as flow control sets it.
  limit_now int check (limit_now >= 0),
  in_use int not null default 0 check (in_use >= 0),
  -- Nothing is granted before this time.
  cooldown_until timestamptz,
  -- Nothing is granted while it is paused.
  paused_at timestamptz,
  paused_by text,
  paused_why text,
  -- Somebody in its line should have been called and could not be: a claim that had just let go of the message still
  -- held its row. Whoever has nothing to do calls again.
  recall boolean not null default false,
  made_at timestamptz not null default clock_timestamp()
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05);
create index limit_key_recall on spillway.limit_key (key) where recall;

-- Which message holds which keys. A redelivered message inherits what its dead holder had, so that a crash neither
-- leaks a place nor lets two in.
create table spillway.limit_hold (
  queue text collate "C" not null,
  msg_id bigint not null,
  key text collate "C" not null,
  primary key (queue, msg_id, key)
);
create index limit_hold_key on spillway.limit_hold (key);

-- Who waits for which key, in order. A message keeps its place when it is called and refused once more.
create table spillway.limit_wait (
  queue text collate "C" not null,
  msg_id bigint not null,
  key text collate "C" not null,
  seq bigint generated always as identity,
  command_id uuid,
  -- Called, and not yet looked at.
  woken_at timestamptz,
  primary key (queue, msg_id)
);
create index limit_wait_line on spillway.limit_wait (key, seq) where woken_at is null;
create index limit_wait_woken on spillway.limit_wait (key) where woken_at is not null;
create index limit_wait_command on spillway.limit_wait (command_id);

alter table spillway.limit_key enable row level security;
alter table spillway.limit_hold enable row level security;
alter table spillway.limit_wait enable row level security;
grant select, insert, update on spillway.limit_key to spillway_worker;
grant select, insert, delete on spillway.limit_hold to spillway_worker;
grant select, insert, update, delete on spillway.limit_wait to spillway_worker;
grant select on spillway.limit_key, spillway.limit_hold, spillway.limit_wait to spillway_operator;
grant select on spillway.limit_key, spillway.limit_wait to spillway_gateway;
create policy worker_works on spillway.limit_key for all to spillway_worker using (true) with check (true);
create policy worker_works on spillway.limit_hold for all to spillway_worker using (true) with check (true);
create policy worker_works on spillway.limit_wait for all to spillway_worker using (true) with check (true);
create policy operator_reads on spillway.limit_key for select to spillway_operator using (true);
create policy operator_reads on spillway.limit_hold for select to spillway_operator using (true);
create policy operator_reads on spillway.limit_wait for select to spillway_operator using (true);
create policy gateway_reads on spillway.limit_key for select to spillway_gateway using (true);
create policy gateway_reads on spillway.limit_wait for select to spillway_gateway using (true);

-- The claim that was last run alone, as its read count: a crash is charged only to a message that ran alone.
alter table spillway.command add column alone_read_ct int;

-- What a parked message's vt is: a year that no lease and no backoff reaches. Infinity is no time to many clients.
create function spillway.parked_until() returns timestamptz
language sql immutable parallel safe as $$ select timestamptz '2200-01-01 00:00:00+00' $$;

-- The keys of a message: each with the cap that its row gets when it is made.
create function spillway.limits_of(workload text, payload jsonb) returns jsonb
language sql immutable parallel safe as $$
  select case
    -- One run per account and kind of work. What is no such payload needs no key: its run says what is wrong with it.
    when workload = 'snaptrade-account-sync' and payload ->> 'work_type' in ('holdings', 'transactions')
      and payload ->> 'account_id' is not null
    then jsonb_build_object('snaptrade-account-sync:' || (payload ->> 'work_type') || ':' || (payload ->> 'account_id'), 1)
  end
$$;

-- Calls as many waiters of each key as there is room for; answers how many heard. The caller holds the keys' locks.
create function spillway.limit_wake(p_keys text[]) returns bigint
language plpgsql as $$
declare
  open record;
  line record;
  called bigint;
  heard bigint := 0;
begin
  for open in
    select k.key, least(k.cap, coalesce(k.limit_now, k.cap)) - k.in_use
      - (select count(*) from spillway.limit_wait w where w.key = k.key and w.woken_at is not null) as room
    from spillway.limit_key k
    where k.key = any (p_keys) and k.paused_at is null
      and (k.cooldown_until is null or k.cooldown_until <= clock_timestamp())
    order by k.key
  loop
    called := 0;
    for line in
      select n.queue, array_agg(n.msg_id) as ids from (
        select w.queue, w.msg_id from spillway.limit_wait w
        where w.key = open.key and w.woken_at is null order by w.seq limit greatest(open.room, 0)
      ) n group by n.queue order by n.queue
    loop
      called := called + spillway.queue_wake(line.queue, line.ids);
    end loop;
    heard := heard + called;
    update spillway.limit_key k set recall = not k.recall
    where k.key = open.key and k.recall <> (called < open.room
      and exists (select from spillway.limit_wait w where w.key = k.key and w.woken_at is null));
  end loop;
  return heard;
end
$$;

-- Lets messages through or parks them: the answer holds places in `p_ids`. At most `p_most` get through; what would
-- get through beyond that is in neither list. The caller holds the messages' locks.
create function spillway.limit_admit(
  p_queue text, p_ids bigint[], p_commands uuid[], p_limits jsonb[], p_most int, out granted int[], out parked int[])
language plpgsql as $$
declare
  names text[];
  room int[];
  candidate record;
  place int;
  refused_by text;
  given_ids bigint[] := '{}';
  given_keys text[] := '{}';
  dropped bigint[] := '{}';
  lines text[] := '{}';
  calls boolean;
begin
  granted := '{}';
  parked := '{}';
  insert into spillway.limit_key (key, cap)
  select l.key, max(l.value::int) from unnest(p_limits) u (limits), jsonb_each_text(u.limits) l
  group by l.key order by l.key collate "C"
  on conflict do nothing;
  -- Closed keys have no room at all, not even for those who hold them: null.
  select array_agg(k.key), array_agg(k.room) into names, room from (
    select k.key,
      case when k.paused_at is null and (k.cooldown_until is null or k.cooldown_until <= clock_timestamp())
        then least(k.cap, coalesce(k.limit_now, k.cap)) - k.in_use end as room
    from spillway.limit_key k
    where k.key in (select jsonb_object_keys(u.limits) from unnest(p_limits) u (limits))
    order by k.key for update
  ) k;

  for candidate in
    select u.place::int as place, u.id, u.limits is null as is_free,
      exists (select from spillway.limit_hold h where h.queue = p_queue and h.msg_id = u.id) as is_held,
      array(select array_position(names, l.key) from jsonb_object_keys(u.limits) l (key) order by 1) as at
    from unnest(p_ids, p_limits) with ordinality u (id, limits, place)
    order by u.place
  loop
    refused_by := null;
    if not candidate.is_free then
      -- A key that was trimmed a moment ago: the next claim makes it anew.
      continue when array_position(candidate.at, null) is not null;
      foreach place in array candidate.at loop
        if room[place] is null or (room[place] <= 0 and not candidate.is_held) then
          refused_by := names[place];
          exit;
        end if;
      end loop;
    end if;
    if refused_by is not null then
      parked := parked || candidate.place;
      lines := lines || refused_by;
      if candidate.is_held then
        dropped := dropped || candidate.id;
      end if;
    elsif cardinality(granted) < p_most then
      granted := granted || candidate.place;
      if not candidate.is_free and not candidate.is_held then
        foreach place in array candidate.at loop
          room[place] := room[place] - 1;
          given_ids := given_ids || candidate.id;
          given_keys := given_keys || names[place];
        end loop;
      end if;
    end if;
  end loop;

  if given_ids <> '{}' then
    insert into spillway.limit_hold (queue, msg_id, key) select p_queue, g.id, g.key from unnest(given_ids, given_keys) g (id, key);
    update spillway.limit_key k set in_use = k.in_use + g.n
    from (select g.key, count(*)::int as n from unnest(given_keys) g (key) group by g.key) g where k.key = g.key;
    delete from spillway.limit_wait w where w.queue = p_queue and w.msg_id = any (given_ids);
  end if;
  if dropped <> '{}' then
    perform spillway.limit_drop(p_queue, dropped);
  end if;
  if parked <> '{}' then
    -- Called for one key and refused by another: the first one's room is for the next in its line.
    calls := dropped <> '{}' or exists (select from spillway.limit_wait w
      where w.queue = p_queue and w.msg_id in (select p_ids[p.place] from unnest(parked) p (place)));
    insert into spillway.limit_wait (queue, msg_id, key, command_id)
    select p_queue, p_ids[p.place], p.key, p_commands[p.place] from unnest(parked, lines) with ordinality p (place, key, nth)
    order by p.nth
    on conflict (queue, msg_id) do update set key = excluded.key, woken_at = null;
    if calls then
      perform spillway.limit_wake(names);
    end if;
  end if;
end
$$;

-- Takes the messages' keys away. The caller holds the keys' locks.
create function spillway.limit_drop(p_queue text, p_ids bigint[]) returns void
language sql as $$
  with gone as (
    delete from spillway.limit_hold h where h.queue = p_queue and h.msg_id = any (p_ids) returning h.key
  )
  update spillway.limit_key k set in_use = greatest(k.in_use - g.n, 0)
  from (select gone.key, count(*)::int as n from gone group by gone.key) g where k.key = g.key
$$;

-- Gives back what messages that are done, or due again later, hold or wait for. The caller holds the messages' locks.
create function spillway.limit_release(p_queue text, p_ids bigint[]) returns void
language plpgsql as $$
declare
  names text[];
begin
  select array_agg(n.key) into names from (
    select h.key from spillway.limit_hold h where h.queue = p_queue and h.msg_id = any (p_ids)
    union
    select w.key from spillway.limit_wait w where w.queue = p_queue and w.msg_id = any (p_ids)
  ) n;
  if names is null then
    return;
  end if;
  perform from spillway.limit_key k where k.key = any (names) order by k.key for update;
  delete from spillway.limit_wait w where w.queue = p_queue and w.msg_id = any (p_ids);
  perform spillway.limit_drop(p_queue, p_ids);
  perform spillway.limit_wake(names);
end
$$;

-- Calls again where a call was missed; answers how many heard it now. A transaction of its own: it takes the keys
-- out of turn, and waits for none.
create function spillway.limit_recall() returns bigint
language plpgsql as $$
declare
  names text[];
begin
  select array_agg(k.key) into names from (
    select k.key from spillway.limit_key k where k.recall order by k.key limit 100 for update skip locked
  ) k;
  return spillway.limit_wake(names);
end
$$;

-- Compares keys, holds, lines and messages of one queue, mends what does not fit, and answers how much that was.
-- It is expected to mend nothing; besides, it calls again those whose call nobody followed, and ends cooldowns.
create function spillway.limit_sweep(p_queue text) returns bigint
language plpgsql as $$
declare
  name text;
  mended bigint := 0;
  n bigint;
begin
  for name in
    select s.key from (
      select h.key from spillway.limit_hold h where h.queue = p_queue
      union
      select w.key from spillway.limit_wait w where w.queue = p_queue
    ) s order by s.key
  loop
    perform from spillway.limit_key k where k.key = name for update;
    delete from spillway.limit_hold h
    where h.queue = p_queue and h.key = name and h.msg_id <> all (spillway.queue_present(p_queue,
      array(select o.msg_id from spillway.limit_hold o where o.queue = p_queue and o.key = name)));
    get diagnostics n = row_count;
    mended := mended + n;
    update spillway.limit_key k set in_use = h.n
    from (select count(*)::int as n from spillway.limit_hold h where h.key = name) h
    where k.key = name and k.in_use <> h.n;
    get diagnostics n = row_count;
    mended := mended + n;
    update spillway.limit_wait w set woken_at = null
    where w.key = name and w.woken_at < clock_timestamp() - interval '5 seconds';
    perform spillway.limit_wake(array[name]);
  end loop;
  return mended + spillway.queue_unpark(p_queue);
end
$$;
