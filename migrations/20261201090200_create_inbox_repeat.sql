-- Deliveries that started nothing of their own, on record under the row that stands for them. Statistics: they
-- are written in batches off the answer path, and decide nothing.
-- Locks: new objects; `create index` keeps writes off command while it reads the table.

create table spillway.inbox_repeat (
  inbox_id uuid primary key,
  duplicates bigint not null default 0,
  coalesced bigint not null default 0,
  shed bigint not null default 0,
  first_at timestamptz not null,
  last_at timestamptz not null,
  -- The latest few, each with its time, kind and correlation id.
  latest jsonb not null default '[]'
) with (fillfactor = 80);

alter table spillway.inbox_repeat enable row level security;
grant select, insert, update on spillway.inbox_repeat to spillway_gateway;
grant select on spillway.inbox_repeat to spillway_operator;
create policy gateway_counts on spillway.inbox_repeat for all to spillway_gateway using (true) with check (true);
create policy operator_reads on spillway.inbox_repeat for select to spillway_operator using (true);

-- What a coalesced delivery is part of is known only after its row is written.
grant update (command_id, finished_at) on spillway.webhook_inbox to spillway_gateway;
create policy gateway_links on spillway.webhook_inbox for update to spillway_gateway using (true) with check (true);

-- Lists of commands: of the open ones, and of those that ended otherwise than by success. No index covers
-- status on the way of a command that succeeds.
create index command_open on spillway.command (workload, id) where finished_at is null;
create index command_unhappy on spillway.command (status, id)
  where status in ('dead_lettered', 'suppressed', 'reconciled', 'superseded', 'cancelled');
