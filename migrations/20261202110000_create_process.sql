-- Who is there: a row for every long-running process, and a lease for every job that one of them does for all.
-- Locks: new objects only.

create table spillway.process (
  -- Never the same twice: a host's name comes back after a restart, an incarnation's id does not.
  id text collate "C" primary key,
  kind text not null,
  version text not null,
  host text not null,
  pid int not null,
  -- The queue it works on; null for a process that works on none.
  queue text,
  -- What it may have in work at a time.
  slots int not null,
  started_at timestamptz not null default clock_timestamp(),
  last_seen_at timestamptz not null default clock_timestamp()
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500);

-- The holder of a job's row does the job until then, by the database's clock.
create table spillway.elected_job (
  name text primary key,
  holder text not null,
  until timestamptz not null
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500);

alter table spillway.process enable row level security;
alter table spillway.elected_job enable row level security;
grant select, insert, update, delete on spillway.process to spillway_gateway, spillway_worker;
grant select, insert, update on spillway.elected_job to spillway_gateway, spillway_worker;
grant select on spillway.process, spillway.elected_job to spillway_operator;
create policy processes_register on spillway.process for all
  to spillway_gateway, spillway_worker using (true) with check (true);
create policy operator_reads on spillway.process for select to spillway_operator using (true);
create policy processes_elect on spillway.elected_job for all
  to spillway_gateway, spillway_worker using (true) with check (true);
create policy operator_reads on spillway.elected_job for select to spillway_operator using (true);
