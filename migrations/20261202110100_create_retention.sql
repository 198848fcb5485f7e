-- How long rows live, in one table, and the one function that ends them, batch by batch. It can be given to every
-- process because it removes nothing that is younger, alive or undecided, whoever calls it.
-- Locks: `alter table` on webhook_inbox and a trigger on dead_letter for a moment; `create index` keeps writes off webhook_inbox
-- while it reads the table.

create table spillway.retention (
  rule text primary key,
  -- The table, as migrations/README.md names it.
  relation text not null,
  keep interval not null check (keep >= interval '1 hour'),
  -- What goes, and from when its time is counted.
  what text not null,
  -- Rules run in this order: what others hang on goes first.
  place int not null unique
);

insert into spillway.retention (rule, relation, keep, what, place) values
  ('archive', 'pgmq.a_*', '7 days', 'archived messages', 1),
  ('webhook_body', 'spillway.webhook_inbox', '30 days', 'bodies, after they were accepted', 2),
  ('dead_letter', 'spillway.dead_letter', '90 days', 'dead letters, after they were decided on', 3),
  ('command', 'spillway.command', '90 days', 'commands and their failed attempts, after their end', 4),
  ('webhook_inbox', 'spillway.webhook_inbox', '90 days', 'identities, after they were accepted', 5),
  ('process', 'spillway.process', '1 day', 'processes that did not say goodbye, after they were last seen', 6),
  ('operator_action', 'spillway.operator_action', '400 days', 'what operators did', 7);

alter table spillway.retention enable row level security;
grant select on spillway.retention to spillway_gateway, spillway_worker, spillway_operator;
create policy everyone_of_ours on spillway.retention for select
  to spillway_gateway, spillway_worker, spillway_operator using (true);

-- Whoever decides on a dead letter, by whichever statement: its time is counted from here.
create function spillway.stamp_decision() returns trigger
language plpgsql as $$
begin
  new.decided_at := case when new.state <> 'open' then clock_timestamp() end;
  return new;
end
$$;
create trigger stamp_decision before update of state on spillway.dead_letter
  for each row when (old.state is distinct from new.state) execute function spillway.stamp_decision();

alter table spillway.webhook_inbox alter column body drop not null;
-- Bodies that are still there, oldest first.
create index webhook_inbox_body on spillway.webhook_inbox (id) where body is not null;

-- The smallest id that can be made at a time.
create function spillway.uuid_v7_floor(at timestamptz) returns uuid
language sql immutable strict parallel safe as $$
  select (lpad(to_hex((extract(epoch from at) * 1000)::bigint), 12, '0') || '70008000000000000000')::uuid
$$;

-- True while an inbox row's command is alive or waits for a decision.
create function spillway.is_needed(command_id uuid) returns boolean
language sql stable parallel safe as $$
  select exists (select from spillway.command k where k.id = command_id and k.finished_at is null)
    or exists (select from spillway.dead_letter l where l.command_id = is_needed.command_id and l.state = 'open')
$$;

-- Of these commands, the ones whose message is still in a queue: a command that was taken back leaves its message
-- there until it is due. No message is older than its command, so only old ones are looked into.
create function spillway.awaited(p_commands uuid[], p_kept_since timestamptz) returns uuid[]
language plpgsql as $$
declare
  named text;
  part uuid[];
  answer uuid[] := '{}';
begin
  for named in
    select distinct k.queue from spillway.command k
    join spillway.workload w on w.queue = k.queue
    where k.id = any (p_commands) and k.status in ('cancelled', 'superseded')
  loop
    execute format(
      'select array_remove(array_agg(spillway.command_of(q.message)), null) from pgmq.q_%s q
       where q.enqueued_at < $1', named) into part using p_kept_since;
    answer := answer || coalesce(part, '{}');
  end loop;
  return answer;
end
$$;

-- The oldest archived messages of all queues, at most p_limit in all.
create function spillway.trim_archives(p_kept_since timestamptz, p_limit int, p_remove boolean) returns int
language plpgsql as $$
declare
  named text;
  part int;
  answer int := 0;
begin
  for named in
    select unnest(array[w.queue, w.dead_letter_queue]) from spillway.workload w
  loop
    if p_remove then
      execute format(
        'delete from pgmq.a_%1$s a using (
           select o.msg_id from pgmq.a_%1$s o where o.archived_at < $1 order by o.archived_at limit $2
           for update skip locked) old
         where a.msg_id = old.msg_id', named) using p_kept_since, p_limit - answer;
      get diagnostics part = row_count;
    else
      execute format(
        'select count(*) from (select from pgmq.a_%s a where a.archived_at < $1 limit $2) old', named)
        into part using p_kept_since, p_limit - answer;
    end if;
    answer := answer + part;
    exit when answer >= p_limit;
  end loop;
  return answer;
end
$$;

-- One batch of one rule: looks at no more than p_limit rows, in the order of their ids from p_after on, and ends
-- those of them that are past their time. Without p_remove it only counts them.
--   examined  rows looked at; fewer than p_limit means that there are no more,
--   past      rows past their time,
--   reached   where the next batch goes on; null for rules that leave nothing behind that they looked at.
-- Ids begin with their time, by a gateway's clock, so the walk along the primary key ends an hour past the time that
-- is asked for; the row's own time, by the database's clock, decides.
create function spillway.trim_batch(
  p_rule text, p_after uuid, p_limit int, p_remove boolean, out examined int, out past int, out reached uuid)
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  kept_since timestamptz;
  first uuid := coalesce(p_after, '00000000-0000-0000-0000-000000000000');
  last uuid;
  seen uuid[];
  old uuid[];
  waiting uuid[];
begin
  if p_limit not between 1 and 10000 then
    raise exception 'p_limit must be from 1 to 10000' using errcode = 'invalid_parameter_value';
  end if;
  select clock_timestamp() - r.keep into kept_since from spillway.retention r where r.rule = p_rule;
  last := spillway.uuid_v7_floor(kept_since + interval '1 hour');
  case p_rule
  when 'archive' then
    past := spillway.trim_archives(kept_since, p_limit, p_remove);
    examined := past;
    return;

  when 'process' then
    with gone as (
      select p.id from spillway.process p where p.last_seen_at < kept_since order by p.id limit p_limit
    ), removed as (
      delete from spillway.process p using gone
      where p_remove and p.id = gone.id and p.last_seen_at < kept_since
    )
    select count(*) into past from gone;
    examined := past;
    return;

  when 'operator_action' then
    with gone as (
      select a.id from spillway.operator_action a where a.at < kept_since order by a.id limit p_limit
    ), removed as (
      delete from spillway.operator_action a using gone where p_remove and a.id = gone.id
    )
    select count(*) into past from gone;
    examined := past;
    return;

  when 'dead_letter' then
    seen := array(
      select l.id from spillway.dead_letter l where l.id > first and l.id < last order by l.id limit p_limit);
    old := array(
      select l.id from spillway.dead_letter l
      where l.id = any (seen) and l.state <> 'open' and l.decided_at < kept_since);
    if p_remove then
      old := array(
        select l.id from spillway.dead_letter l
        where l.id = any (old) and l.state <> 'open' and l.decided_at < kept_since
        order by l.id for update skip locked);
      delete from spillway.replay r where r.dead_letter_id = any (old);
      delete from spillway.dead_letter l where l.id = any (old);
    end if;

  when 'command' then
    seen := array(
      select k.id from spillway.command k where k.id > first and k.id < last order by k.id limit p_limit);
    waiting := spillway.awaited(seen, kept_since);
    old := array(
      select k.id from spillway.command k
      where k.id = any (seen) and k.finished_at < kept_since
        and not exists (select from spillway.dead_letter l where l.command_id = k.id)
        and k.id <> all (waiting));
    if p_remove then
      old := array(
        select k.id from spillway.command k
        where k.id = any (old) and k.finished_at < kept_since order by k.id for update skip locked);
      delete from spillway.attempt_failure f where f.command_id = any (old);
      delete from spillway.command k where k.id = any (old);
    end if;

  when 'webhook_body' then
    seen := array(
      select i.id from spillway.webhook_inbox i
      where i.body is not null and i.id > first and i.id < last order by i.id limit p_limit);
    old := array(
      select i.id from spillway.webhook_inbox i
      where i.id = any (seen) and i.accepted_at < kept_since and not spillway.is_needed(i.command_id));
    if p_remove then
      old := array(
        select i.id from spillway.webhook_inbox i where i.id = any (old) order by i.id for update skip locked);
      update spillway.webhook_inbox i set body = null, doc = null where i.id = any (old);
    end if;

  when 'webhook_inbox' then
    seen := array(
      select i.id from spillway.webhook_inbox i where i.id > first and i.id < last order by i.id limit p_limit);
    old := array(
      select i.id from spillway.webhook_inbox i
      where i.id = any (seen) and i.accepted_at < kept_since and not spillway.is_needed(i.command_id));
    if p_remove then
      old := array(
        select i.id from spillway.webhook_inbox i where i.id = any (old) order by i.id for update skip locked);
      delete from spillway.inbox_repeat r where r.inbox_id = any (old);
      delete from spillway.webhook_inbox i where i.id = any (old);
    end if;

  else
    raise exception 'no retention rule is called %', p_rule using errcode = 'invalid_parameter_value';
  end case;
  examined := cardinality(seen);
  past := cardinality(old);
  reached := seen[examined];
end
$$;

revoke all on function
  spillway.stamp_decision(), spillway.uuid_v7_floor(timestamptz), spillway.is_needed(uuid),
  spillway.awaited(uuid[], timestamptz), spillway.trim_archives(timestamptz, int, boolean),
  spillway.trim_batch(text, uuid, int, boolean)
from public;
grant execute on function spillway.trim_batch(text, uuid, int, boolean)
  to spillway_gateway, spillway_worker, spillway_operator;
