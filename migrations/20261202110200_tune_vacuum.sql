-- Vacuum for tables that live by change: soon, by number of changes instead of share of the table, and never with a
-- pause that the next claim would pay for.
-- Locks: no reads or writes wait; `alter table … set` waits for a vacuum of the same table to end.

do $$
declare
  w record;
begin
  for w in select queue, dead_letter_queue from spillway.workload order by queue loop
    -- Dead entries of the index on vt are what slows a claim, and vacuum skips the indexes while few pages hold dead
    -- rows. Giving empty pages at the end back locks everybody out of the table, and the next burst needs them.
    execute format('alter table pgmq.q_%s set (vacuum_index_cleanup = on, vacuum_truncate = off)', w.queue);
    -- Archives only grow, and lose a day of seven each day.
    execute format(
      'alter table pgmq.a_%s set (autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.05)',
      w.queue);
  end loop;
end
$$;

-- A row for every command ever: the default of a fifth would be millions of dead rows.
alter table spillway.command set (
  autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 10000, autovacuum_vacuum_cost_limit = 1000,
  autovacuum_analyze_scale_factor = 0.02);
alter table spillway.webhook_inbox set (
  autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 10000, autovacuum_vacuum_cost_limit = 1000,
  autovacuum_analyze_scale_factor = 0.02);
alter table spillway.attempt_failure set (autovacuum_vacuum_scale_factor = 0.02);
alter table spillway.inbox_repeat set (autovacuum_vacuum_scale_factor = 0.02);

-- Few rows, changed by every event.
alter table spillway.account_sync set (
  autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_cost_delay = 0);
alter table spillway.payment_feed set (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 2000);
