-- What operators decide about dead letters: who, why and when, and what was sent through the queue once more.
-- Locks: `alter table` on command and dead_letter for a moment, without reading or rewriting them.

alter table spillway.command
  -- How often it was sent through the queue once more, and the first dead letter that this was done for.
  add column replays int not null default 0,
  add column first_dead_letter uuid;

alter table spillway.dead_letter
  add column decided_at timestamptz,
  add column decided_by text,
  -- Of a command that died again after a replay: how often it had been replayed, and its first dead letter.
  add column replays int not null default 0,
  add column first_dead_letter uuid;

-- One row for each replay that took effect.
create table spillway.replay (
  -- A dead letter is replayed once at most.
  dead_letter_id uuid primary key,
  command_id uuid not null,
  msg_id bigint not null,
  action text not null check (action in ('replay_same_input', 'repair_then_replay')),
  actor text not null,
  why text not null,
  -- Only of a repaired input: what it was, what it is, and where they differ.
  original jsonb,
  repaired jsonb,
  difference jsonb,
  at timestamptz not null default clock_timestamp(),
  check (num_nonnulls(original, repaired, difference) = case action when 'repair_then_replay' then 3 else 0 end)
);
create index replay_command on spillway.replay (command_id);

-- What operators did. Rows are added and never changed.
create table spillway.operator_action (
  id bigint generated always as identity primary key,
  actor text not null,
  action text not null,
  -- What it was done to, such as `dead_letter`, and which one.
  target_kind text not null,
  target text not null,
  why text not null,
  details jsonb not null default '{}',
  at timestamptz not null default clock_timestamp()
);
create index operator_action_target on spillway.operator_action (target_kind, target);

alter table spillway.replay enable row level security;
alter table spillway.operator_action enable row level security;
grant select, insert on spillway.replay, spillway.operator_action to spillway_operator;
create policy operator_reads on spillway.replay for select to spillway_operator using (true);
create policy operator_replays on spillway.replay for insert to spillway_operator with check (true);
create policy operator_reads on spillway.operator_action for select to spillway_operator using (true);
create policy operator_acts on spillway.operator_action for insert to spillway_operator with check (true);

-- A dead letter is decided on once.
grant update (state, decided_at, decided_by) on spillway.dead_letter to spillway_operator;
create policy operator_decides on spillway.dead_letter for update to spillway_operator
  using (state = 'open') with check (state <> 'open' and decided_by is not null and decided_at is not null);

-- An operator touches a command only where it was given up, and says nothing about its success.
grant update (status, class, payload, attempts, crashes, outcomes, retry_class, next_attempt_at, blocked_reason,
    blocked_until, blocked_since, blocked_times, result, failure_code, failure_message, progress_done, progress_total,
    started_at, finished_at, replays, first_dead_letter)
  on spillway.command to spillway_operator;
create policy operator_decides on spillway.command for update to spillway_operator
  using (status = 'dead_lettered') with check (status in ('queued', 'suppressed', 'reconciled'));

-- A sync that is replayed asks for a sync.
grant insert, update on spillway.account_sync to spillway_operator;
create policy operator_asks on spillway.account_sync for insert to spillway_operator with check (true);
create policy operator_asks_again on spillway.account_sync for update to spillway_operator
  using (true) with check (true);

-- The new message goes in, the dead letter's message goes to the archive.
do $$
declare
  w record;
begin
  for w in select queue, dead_letter_queue from spillway.workload order by queue loop
    execute format('grant insert (vt, message, headers) on pgmq.q_%s to spillway_operator', w.queue);
    execute format('create policy operator_replays on pgmq.q_%s for insert to spillway_operator with check (true)', w.queue);
    execute format('grant delete on pgmq.q_%s to spillway_operator', w.dead_letter_queue);
    execute format('create policy operator_decides on pgmq.q_%s for delete to spillway_operator using (true)', w.dead_letter_queue);
    execute format('grant insert on pgmq.a_%s to spillway_operator', w.dead_letter_queue);
    execute format('create policy operator_archives on pgmq.a_%s for insert to spillway_operator with check (true)', w.dead_letter_queue);
  end loop;
end
$$;
