-- The ledger: workloads, commands with their public status, failed attempts and dead letters.
-- Locks: new objects only.

create schema if not exists spillway;
revoke all on schema spillway from public;
grant usage on schema spillway to spillway_gateway, spillway_worker, spillway_operator;

-- The contract's tables, row for row. Every process compares them with its own at start.
create table spillway.workload (
  kind text primary key,
  queue text not null unique,
  dead_letter_queue text not null unique,
  class smallint not null check (class between 0 and 3),
  lease_seconds int not null check (lease_seconds > 0),
  max_attempts int not null check (max_attempts > 0),
  max_crashes int not null check (max_crashes > 0),
  run_deadline_seconds int not null check (run_deadline_seconds > 0),
  backoff_first_seconds int not null check (backoff_first_seconds > 0),
  backoff_cap_seconds int not null check (backoff_cap_seconds >= backoff_first_seconds),
  not_yet_seconds int not null check (not_yet_seconds > 0),
  replay_policies text[] not null
);

insert into spillway.workload values
  ('spicedb-relationship-sync', 'sanmopia_spicedb_relationships', 'sanmopia_spicedb_relationships_dead',
    1, 60, 10, 3, 30, 1, 300, 86400, '{replay_same_input,repair_then_replay,suppress}'),
  ('payment-reconciliation', 'sanmopia_payment_reconciliation', 'sanmopia_payment_reconciliation_dead',
    0, 60, 12, 3, 45, 5, 1800, 604800, '{replay_same_input,manual_reconcile}'),
  ('payment-webhook-processing', 'sanmopia_payment_webhook_processing', 'sanmopia_payment_webhook_processing_dead',
    0, 60, 12, 3, 30, 1, 600, 604800, '{replay_same_input,repair_then_replay,suppress,manual_reconcile}'),
  ('document-rendering', 'sanmopia_document_rendering', 'sanmopia_document_rendering_dead',
    1, 60, 5, 3, 600, 5, 600, 21600, '{replay_same_input,repair_then_replay,suppress}'),
  ('settlement-export', 'sanmopia_settlement_export', 'sanmopia_settlement_export_dead',
    1, 60, 5, 3, 3600, 10, 600, 86400, '{replay_same_input,suppress,manual_reconcile}'),
  ('notification-dispatch', 'sanmopia_notification_dispatch', 'sanmopia_notification_dispatch_dead',
    2, 60, 8, 3, 60, 5, 1800, 86400, '{replay_same_input,suppress}'),
  ('caregiver-matching-optimization', 'sanmopia_caregiver_matching_optimization',
    'sanmopia_caregiver_matching_optimization_dead',
    1, 60, 3, 2, 900, 10, 600, 21600, '{replay_same_input,suppress}'),
  ('snaptrade-account-sync', 'sanmopia_snaptrade_account_sync', 'sanmopia_snaptrade_account_sync_dead',
    1, 60, 8, 3, 600, 5, 1800, 86400, '{replay_same_input,suppress}');

create table spillway.command (
  id uuid primary key,
  workload text not null,
  kind text not null,
  payload_version int not null,
  -- Bytes decide whether two keys are equal, not a language's rules.
  idempotency_key text collate "C" not null,
  request_hash bytea not null,
  payload jsonb not null,
  actor_id text not null,
  actor_type text not null,
  scope text collate "C" not null,
  decision text not null,
  class smallint not null check (class between 0 and 3),
  queue text not null,
  lease_seconds int not null,
  max_attempts int not null,
  status text not null default 'queued' check (status in (
    'accepted', 'queued', 'running', 'retrying', 'blocked', 'succeeded', 'dead_lettered',
    'replayed', 'suppressed', 'reconciled', 'superseded', 'cancelled')),
  -- Runs that ended in success or in a failure that counts.
  attempts int not null default 0,
  crashes int not null default 0,
  -- Claims that ended with the message due again. pgmq's read count grows with each claim and with each such
  -- end, so more than twice this, plus the claim itself, means that a claim ended without a word.
  outcomes int not null default 0,
  retry_class text,
  next_attempt_at timestamptz,
  blocked_reason text,
  blocked_until timestamptz,
  -- Since when, and how often in a row, it has been told "not yet" for this reason. The reason outlives the
  -- state: it is shown while the command is blocked, and compared when it is told "not yet" again.
  blocked_since timestamptz,
  blocked_times int not null default 0,
  snapshots text[] not null default '{}',
  expected_revision bigint,
  result jsonb,
  failure_code text,
  failure_message text,
  progress_done bigint,
  progress_total bigint,
  traceparent text not null,
  tracestate text not null default '',
  correlation_id text not null,
  provider_request_ids text[] not null default '{}',
  accepted_at timestamptz not null default clock_timestamp(),
  started_at timestamptz,
  finished_at timestamptz,
  constraint command_identity unique (workload, scope, idempotency_key)
) with (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.05);

create table spillway.attempt_failure (
  id bigint generated always as identity primary key,
  command_id uuid not null,
  msg_id bigint not null,
  read_ct int not null,
  class text not null,
  code text not null,
  message text not null,
  request_id text,
  worker text not null,
  failed_at timestamptz not null default clock_timestamp()
);
create index attempt_failure_command on spillway.attempt_failure (command_id);

create table spillway.dead_letter (
  id uuid primary key,
  command_id uuid,
  workload text not null,
  queue text not null,
  msg_id bigint not null,
  dead_msg_id bigint not null,
  reason text not null,
  detail_code text not null,
  detail text not null,
  policies text[] not null,
  -- The message as it was; for a message that names no command this is all there is.
  message jsonb not null,
  headers jsonb,
  attempts int not null,
  crashes int not null,
  state text not null default 'open' check (state in ('open', 'replayed', 'suppressed', 'reconciled')),
  died_at timestamptz not null default clock_timestamp(),
  -- One terminal failure reported twice is one dead letter; a queue made anew counts its ids from 1, its
  -- commands differ.
  constraint dead_letter_once unique (queue, msg_id, command_id)
);
create index dead_letter_open on spillway.dead_letter (died_at desc) where state = 'open';
create index dead_letter_command on spillway.dead_letter (command_id);

alter table spillway.workload enable row level security;
alter table spillway.command enable row level security;
alter table spillway.attempt_failure enable row level security;
alter table spillway.dead_letter enable row level security;

grant select on spillway.workload to spillway_gateway, spillway_worker, spillway_operator;
create policy everyone_of_ours on spillway.workload for select
  to spillway_gateway, spillway_worker, spillway_operator using (true);

grant select, insert on spillway.command to spillway_gateway;
grant select, update on spillway.command to spillway_worker;
grant select on spillway.command to spillway_operator;
create policy gateway_reads on spillway.command for select to spillway_gateway using (true);
create policy gateway_accepts on spillway.command for insert to spillway_gateway with check (true);
create policy worker_reads on spillway.command for select to spillway_worker using (true);
create policy worker_settles on spillway.command for update to spillway_worker using (true) with check (true);
create policy operator_reads on spillway.command for select to spillway_operator using (true);

grant insert on spillway.attempt_failure to spillway_worker;
grant select on spillway.attempt_failure to spillway_operator;
create policy worker_records on spillway.attempt_failure for insert to spillway_worker with check (true);
create policy operator_reads on spillway.attempt_failure for select to spillway_operator using (true);

grant insert on spillway.dead_letter to spillway_worker;
grant select on spillway.dead_letter to spillway_operator;
create policy worker_gives_up on spillway.dead_letter for insert to spillway_worker with check (true);
create policy operator_reads on spillway.dead_letter for select to spillway_operator using (true);
