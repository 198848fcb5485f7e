-- Facts about a payment in the order in which they were taken in, without gaps.
-- Locks: new objects only.

create table spillway.payment_feed (
  tenant text collate "C" not null,
  payment_id uuid not null,
  -- Raised in the transaction that takes a fact in, under the row's lock: the order of numbers is the order of
  -- commits.
  last_seq bigint not null,
  primary key (tenant, payment_id)
) with (fillfactor = 70);

create table spillway.payment_feed_entry (
  tenant text collate "C" not null,
  payment_id uuid not null,
  seq bigint not null,
  inbox_id uuid not null,
  primary key (tenant, payment_id, seq)
);

alter table spillway.payment_feed enable row level security;
alter table spillway.payment_feed_entry enable row level security;
grant select, insert, update on spillway.payment_feed to spillway_gateway;
grant insert on spillway.payment_feed_entry to spillway_gateway;
grant select on spillway.payment_feed, spillway.payment_feed_entry to spillway_worker, spillway_operator;
create policy gateway_numbers on spillway.payment_feed for all to spillway_gateway using (true) with check (true);
create policy gateway_appends on spillway.payment_feed_entry for insert to spillway_gateway with check (true);
create policy others_read on spillway.payment_feed for select to spillway_worker, spillway_operator using (true);
create policy others_read on spillway.payment_feed_entry for select to spillway_worker, spillway_operator using (true);
