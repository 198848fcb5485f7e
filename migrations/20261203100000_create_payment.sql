-- What is known of payments: their facts in the order of their feeds, and what the facts of each come to.
-- Locks: new objects only.

create table spillway.payment (
  tenant text collate "C" not null,
  payment_id uuid not null,
  -- The number in the payment's feed up to which everything was taken in. It is raised under the row's lock, one by
  -- one: no number is passed whose fact is not there.
  applied_seq bigint not null default 0,
  -- What the facts come to, and what they contradict one another about where a person has to decide.
  state text not null default 'init'
    check (state in ('init', 'pending', 'unknown', 'failed', 'succeeded', 'reversed', 'manual_reconcile')),
  conflict text check (conflict in ('status', 'transaction_type', 'amount', 'currency')),
  changed_at timestamptz not null default clock_timestamp(),
  primary key (tenant, payment_id),
  check ((state = 'manual_reconcile') = (conflict is not null))
) with (fillfactor = 70);
create index payment_to_reconcile on spillway.payment (changed_at) where state = 'manual_reconcile';

create table spillway.payment_fact (
  tenant text collate "C" not null,
  payment_id uuid not null,
  -- Its number in the payment's feed.
  seq bigint not null,
  transaction_id uuid,
  transaction_type text,
  status text,
  -- What was processed; nothing where nothing was said.
  amount numeric,
  currency text,
  effective_at timestamptz,
  -- Why it could not be read. Its number is passed and says nothing; its command is a dead letter, and reads it again
  -- when that is replayed.
  refusal text,
  taken_in_at timestamptz not null default clock_timestamp(),
  primary key (tenant, payment_id, seq),
  foreign key (tenant, payment_id) references spillway.payment (tenant, payment_id),
  check (num_nulls(transaction_id, transaction_type, status) = case when refusal is null then 0 else 3 end)
);
create index payment_fact_refused on spillway.payment_fact (tenant, payment_id) where refusal is not null;

alter table spillway.payment enable row level security;
alter table spillway.payment_fact enable row level security;
grant select, insert, update on spillway.payment, spillway.payment_fact to spillway_worker;
grant select on spillway.payment, spillway.payment_fact to spillway_operator;
create policy worker_takes_in on spillway.payment for all to spillway_worker using (true) with check (true);
-- What a fact says is written once; only one that could not be read may be read again.
create policy worker_reads on spillway.payment_fact for select to spillway_worker using (true);
create policy worker_takes_in on spillway.payment_fact for insert to spillway_worker with check (true);
create policy worker_reads_again on spillway.payment_fact for update to spillway_worker
  using (refusal is not null) with check (true);
create policy operator_reads on spillway.payment for select to spillway_operator using (true);
create policy operator_reads on spillway.payment_fact for select to spillway_operator using (true);

-- How many payments wait for a person, for whichever process watches.
create function spillway.payments_to_reconcile() returns bigint
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select count(*) from spillway.payment p where p.state = 'manual_reconcile'
$$;
revoke all on function spillway.payments_to_reconcile() from public;
grant execute on function spillway.payments_to_reconcile() to spillway_gateway, spillway_worker, spillway_operator;
