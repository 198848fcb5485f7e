-- The inbox: every authenticated delivery that was taken in, byte for byte, and what became of it.
-- Locks: new objects only.

create table spillway.webhook_inbox (
  id uuid primary key,
  source text not null,
  tenant text collate "C" not null default '',
  -- The sender's event id, or one derived from the body where the sender has none.
  identity text collate "C" not null,
  state text not null check (state in ('accepted', 'quarantined', 'refused', 'failed')),
  -- Why it is not accepted; null where it is.
  reason text,
  event_type text,
  -- What the sender signed, hashed and sent; never rewritten.
  body bytea not null,
  body_sha256 bytea not null,
  -- The body as jsonb where it parses clean, without a secret that it may hold: for reading, never for signing,
  -- hashing or dedupe.
  doc jsonb,
  -- The row whose identity it shares, where that row's body is another.
  conflicts_with uuid,
  command_id uuid,
  traceparent text not null,
  correlation_id text not null,
  -- Two times where others have one word: taken in and promised, and nothing left to do. A row with a command
  -- is finished when its command is.
  accepted_at timestamptz not null default clock_timestamp(),
  finished_at timestamptz
) with (autovacuum_vacuum_scale_factor = 0.05);

-- One accepted row an event, for as long as the row lives; a delivery that was not accepted never stands in
-- the way of one that is.
create unique index webhook_inbox_accepted on spillway.webhook_inbox (source, tenant, identity)
  where state = 'accepted';
-- The same broken delivery again is the same row again.
create unique index webhook_inbox_set_aside on spillway.webhook_inbox (source, tenant, identity, body_sha256)
  where state <> 'accepted';

alter table spillway.webhook_inbox enable row level security;
grant select, insert on spillway.webhook_inbox to spillway_gateway;
-- Without the body: older senders put a shared secret into it.
grant select (id, source, tenant, identity, state, reason, event_type, body_sha256, doc, conflicts_with, command_id,
    traceparent, correlation_id, accepted_at, finished_at)
  on spillway.webhook_inbox to spillway_worker, spillway_operator;
create policy gateway_reads on spillway.webhook_inbox for select to spillway_gateway using (true);
create policy gateway_takes_in on spillway.webhook_inbox for insert to spillway_gateway with check (true);
create policy worker_reads on spillway.webhook_inbox for select to spillway_worker using (true);
create policy operator_reads on spillway.webhook_inbox for select to spillway_operator using (true);
