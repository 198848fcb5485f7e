-- Coalescing that loses no update: what was asked for an account, how far it was done, and which sync waits.
-- Locks: `alter table` on snaptrade_account for a moment; its rows are few.

create table spillway.account_sync (
  work_type text not null check (work_type in ('holdings', 'transactions')),
  account_id uuid not null references spillway.snaptrade_account (account_id),
  -- Counts the events that asked for a sync.
  requested bigint not null default 0,
  -- The newest request that a finished sync had seen when it started.
  ok_through bigint not null default 0,
  -- The command that will see everything asked for so far; empty once it has started.
  waiting_command uuid,
  -- The webhook that made it wait, where it was one; deliveries that are coalesced are counted under it.
  waiting_inbox uuid,
  primary key (work_type, account_id)
) with (fillfactor = 70);
create unique index account_sync_waiting on spillway.account_sync (waiting_command)
  where waiting_command is not null;

alter table spillway.snaptrade_account
  add column connection_id uuid,
  -- Why the account is in its state, and by which event; an older event that arrives later changes nothing.
  add column state_reason text,
  add column state_at timestamptz;
create index snaptrade_account_connection on spillway.snaptrade_account (connection_id)
  where connection_id is not null;

alter table spillway.account_sync enable row level security;
grant select, insert, update on spillway.account_sync to spillway_gateway;
grant select, update on spillway.account_sync to spillway_worker;
grant select on spillway.account_sync to spillway_operator;
create policy gateway_requests on spillway.account_sync for all to spillway_gateway using (true) with check (true);
create policy worker_starts on spillway.account_sync for all to spillway_worker using (true) with check (true);
create policy operator_reads on spillway.account_sync for select to spillway_operator using (true);

-- Webhooks open, pause, close and announce accounts, and make a waiting sync pointless.
grant select (account_id, user_id, state, connection_id, state_at), insert (account_id, user_id, connection_id),
    update (state, state_reason, state_at, connection_id, updated_at)
  on spillway.snaptrade_account to spillway_gateway;
create policy gateway_announces on spillway.snaptrade_account for insert to spillway_gateway with check (true);
create policy gateway_changes on spillway.snaptrade_account for update to spillway_gateway
  using (true) with check (true);
grant select (user_id) on spillway.snaptrade_user to spillway_gateway;
create policy gateway_knows_users on spillway.snaptrade_user for select to spillway_gateway using (true);
grant update (status, finished_at, blocked_until, next_attempt_at) on spillway.command to spillway_gateway;
-- A door takes commands back; it runs none.
create policy gateway_closes on spillway.command for update to spillway_gateway
  using (finished_at is null) with check (status in ('superseded', 'cancelled'));
