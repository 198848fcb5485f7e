-- Messages that may take their process down run alone, one of a queue at a time.
-- Locks: new objects only.

create table spillway.queue_alone (
  queue text collate "C" primary key,
  -- The claim that runs alone, or ran alone last. Its place is free as soon as that claim has ended, however it did.
  msg_id bigint not null,
  read_ct int not null
);
alter table spillway.queue_alone enable row level security;
grant select, insert, update on spillway.queue_alone to spillway_worker;
grant select on spillway.queue_alone to spillway_operator;
create policy worker_works on spillway.queue_alone for all to spillway_worker using (true) with check (true);
create policy operator_reads on spillway.queue_alone for select to spillway_operator using (true);
