-- pgmq, a queue and a dead-letter queue for every workload, and who may touch them.
-- Locks: new objects only.

-- Where the server offers the extension it is used; elsewhere `spillway migrate` has installed pgmq's SQL.
do $$
begin
  if to_regnamespace('pgmq') is null then
    create extension if not exists pgmq;
  end if;
end
$$;

grant usage on schema pgmq to spillway_gateway, spillway_worker, spillway_operator;

do $$
declare
  w record;
begin
  for w in select queue, dead_letter_queue from spillway.workload order by queue loop
    perform pgmq.create(w.queue);
    perform pgmq.create(w.dead_letter_queue);

    -- A queue table lives by insert, update and delete: vacuum it after a few thousand changes, whatever its
    -- size, and leave room on each page for the updates of claims and heartbeats.
    execute format(
      'alter table pgmq.q_%s set (fillfactor = 70, autovacuum_vacuum_scale_factor = 0,
         autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 0,
         autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 10000)', w.queue);

    execute format('alter table pgmq.q_%s enable row level security', w.queue);
    execute format('alter table pgmq.a_%s enable row level security', w.queue);
    execute format('alter table pgmq.q_%s enable row level security', w.dead_letter_queue);
    execute format('alter table pgmq.a_%s enable row level security', w.dead_letter_queue);

    -- The gateway sends and sees the ids it was given, nothing else.
    execute format('grant insert (vt, message, headers), select (msg_id) on pgmq.q_%s to spillway_gateway', w.queue);
    execute format('create policy gateway_sends on pgmq.q_%s for insert to spillway_gateway with check (true)', w.queue);
    execute format('create policy gateway_sees_ids on pgmq.q_%s for select to spillway_gateway using (true)', w.queue);

    execute format('grant select, update, delete on pgmq.q_%s to spillway_worker', w.queue);
    execute format('create policy worker_works on pgmq.q_%s for all to spillway_worker using (true) with check (true)', w.queue);
    execute format('grant insert on pgmq.a_%s to spillway_worker', w.queue);
    execute format('create policy worker_archives on pgmq.a_%s for insert to spillway_worker with check (true)', w.queue);
    execute format('grant insert (vt, message, headers), select (msg_id) on pgmq.q_%s to spillway_worker', w.dead_letter_queue);
    execute format('create policy worker_buries on pgmq.q_%s for insert to spillway_worker with check (true)', w.dead_letter_queue);
    execute format('create policy worker_sees_ids on pgmq.q_%s for select to spillway_worker using (true)', w.dead_letter_queue);

    execute format('grant select on pgmq.q_%s, pgmq.a_%s, pgmq.q_%s, pgmq.a_%s to spillway_operator',
      w.queue, w.queue, w.dead_letter_queue, w.dead_letter_queue);
    execute format('create policy operator_reads on pgmq.q_%s for select to spillway_operator using (true)', w.queue);
    execute format('create policy operator_reads on pgmq.a_%s for select to spillway_operator using (true)', w.queue);
    execute format('create policy operator_reads on pgmq.q_%s for select to spillway_operator using (true)', w.dead_letter_queue);
    execute format('create policy operator_reads on pgmq.a_%s for select to spillway_operator using (true)', w.dead_letter_queue);
  end loop;
end
$$;

grant select on pgmq.meta to spillway_gateway, spillway_worker, spillway_operator;
