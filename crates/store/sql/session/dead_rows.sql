select t.schemaname || '.' || t.relname as "table!", t.n_dead_tup as "dead!", t.n_live_tup as "live!",
  greatest(t.last_vacuum, t.last_autovacuum) as vacuumed_at
from pg_stat_user_tables t
where t.schemaname = 'spillway'
  or (t.schemaname = 'pgmq' and t.relname in (select 'q_' || w.queue from spillway.workload w))
order by t.n_dead_tup desc, 1;
