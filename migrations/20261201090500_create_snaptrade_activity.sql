-- The activities of SnapTrade accounts.
-- Locks: new objects; `alter table` on snaptrade_account for a moment.

alter table spillway.snaptrade_account add column transactions_synced_at timestamptz;
grant update (transactions_synced_at) on spillway.snaptrade_account to spillway_worker;

create table spillway.snaptrade_activity (
  account_id uuid not null references spillway.snaptrade_account (account_id),
  activity_id text collate "C" not null,
  type text,
  trade_date timestamptz,
  units numeric,
  price numeric,
  amount numeric,
  fee numeric,
  currency text,
  details jsonb not null,
  primary key (account_id, activity_id)
);
create index snaptrade_activity_date on spillway.snaptrade_activity (account_id, trade_date desc);

alter table spillway.snaptrade_activity enable row level security;
grant select, insert, update, delete on spillway.snaptrade_activity to spillway_worker;
grant select on spillway.snaptrade_activity to spillway_operator;
create policy worker_works on spillway.snaptrade_activity for all to spillway_worker using (true) with check (true);
create policy operator_reads on spillway.snaptrade_activity for select to spillway_operator using (true);
