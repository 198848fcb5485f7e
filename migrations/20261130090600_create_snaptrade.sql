-- SnapTrade: users with their sealed secrets, accounts, and the holdings that a sync stores.
-- Locks: new objects only.

create table spillway.snaptrade_user (
  user_id text collate "C" primary key,
  -- The user's secret at SnapTrade, sealed with SANMOPIA_DATA_KEY; bound to the user id.
  sealed_secret bytea not null,
  created_at timestamptz not null default clock_timestamp(),
  updated_at timestamptz not null default clock_timestamp()
);

create table spillway.snaptrade_account (
  account_id uuid primary key,
  user_id text collate "C" not null references spillway.snaptrade_user (user_id),
  state text not null default 'open' check (state in ('open', 'paused', 'closed')),
  -- As of when the broker's data are, and when they were last stored.
  holdings_as_of timestamptz,
  holdings_synced_at timestamptz,
  created_at timestamptz not null default clock_timestamp(),
  updated_at timestamptz not null default clock_timestamp()
);
create index snaptrade_account_user on spillway.snaptrade_account (user_id);

create table spillway.snaptrade_position (
  account_id uuid not null references spillway.snaptrade_account (account_id),
  -- Its place in the provider's list; a sync replaces the whole list.
  position int not null,
  kind text not null,
  symbol text not null,
  units numeric,
  price numeric,
  cost_basis numeric,
  currency text,
  instrument jsonb not null,
  primary key (account_id, position)
);

create table spillway.snaptrade_balance (
  account_id uuid not null references spillway.snaptrade_account (account_id),
  currency text not null,
  cash numeric,
  buying_power numeric,
  primary key (account_id, currency)
);

create table spillway.snaptrade_order (
  account_id uuid not null references spillway.snaptrade_account (account_id),
  brokerage_order_id text collate "C" not null,
  status text,
  placed_at timestamptz,
  details jsonb not null,
  primary key (account_id, brokerage_order_id)
);

do $$
declare
  t text;
begin
  foreach t in array array[
    'snaptrade_user', 'snaptrade_account', 'snaptrade_position', 'snaptrade_balance', 'snaptrade_order'
  ] loop
    execute format('alter table spillway.%I enable row level security', t);
    execute format('create policy worker_works on spillway.%I for all to spillway_worker using (true) with check (true)', t);
    execute format('create policy operator_reads on spillway.%I for select to spillway_operator using (true)', t);
  end loop;
end
$$;

grant select on spillway.snaptrade_user to spillway_worker;
grant select, update on spillway.snaptrade_account to spillway_worker;
grant select, insert, update, delete
  on spillway.snaptrade_position, spillway.snaptrade_balance, spillway.snaptrade_order to spillway_worker;

grant select (account_id, state) on spillway.snaptrade_account to spillway_gateway;
create policy gateway_knows_accounts on spillway.snaptrade_account for select to spillway_gateway using (true);

-- Operators see who there is and load users; the sealed secret is for the workers alone.
grant select (user_id, created_at, updated_at), insert, update on spillway.snaptrade_user to spillway_operator;
grant select, insert, update on spillway.snaptrade_account to spillway_operator;
grant select on spillway.snaptrade_position, spillway.snaptrade_balance, spillway.snaptrade_order to spillway_operator;
create policy operator_loads on spillway.snaptrade_user for insert to spillway_operator with check (true);
create policy operator_reloads on spillway.snaptrade_user for update to spillway_operator using (true) with check (true);
create policy operator_loads on spillway.snaptrade_account for insert to spillway_operator with check (true);
create policy operator_reloads on spillway.snaptrade_account for update to spillway_operator using (true) with check (true);
