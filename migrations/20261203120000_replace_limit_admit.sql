-- What a long line of one key costs: each claim and each release looked at everybody who waits.
-- Locks: `add column` keeps everybody off limit_wait for a moment.

-- True once it was called and had to wait again.
alter table spillway.limit_wait add column is_again boolean not null default false;

-- Lets messages through or parks them: the answer holds places in `p_ids`. At most `p_most` get through; what would
-- get through beyond that is in neither list. The caller holds the messages' locks.
create or replace function spillway.limit_admit(
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
    with put as (
      insert into spillway.limit_wait (queue, msg_id, key, command_id)
      select p_queue, p_ids[p.place], p.key, p_commands[p.place] from unnest(parked, lines) with ordinality p (place, key, nth)
      order by p.nth
      on conflict (queue, msg_id) do update set key = excluded.key, woken_at = null, is_again = true
      returning is_again
    )
    -- Called for one key and refused by another: the first one's room is for the next in its line.
    select dropped <> '{}' or coalesce(bool_or(put.is_again), false) into calls from put;
    if calls then
      perform spillway.limit_wake(names);
    end if;
  end if;
end
$$;

-- A plan is made when a line is empty, and serves when a hundred thousand wait in it.
alter function spillway.limit_admit(text, bigint[], uuid[], jsonb[], int) set enable_seqscan = off;
alter function spillway.limit_release(text, bigint[]) set enable_seqscan = off;
alter function spillway.limit_recall() set enable_seqscan = off;
