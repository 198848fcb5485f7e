-- A permit given back twice. Each release counts double, which shows where a key has several places; and a worker whose
-- lease has gone gives its successor's keys back, which shows where it has one.
select pg_temp.take_away('limit_drop', 'k.in_use - g.n', 'k.in_use - 2 * g.n');
select pg_temp.take_away('queue_postpone_', $$', ids);$$, $$', p_ids);$$);
select pg_temp.take_away('queue_archive_', $$', ids);$$, $$', p_ids);$$);
select pg_temp.take_away('queue_succeed', 'if gated is not null then', 'if p_ids is not null then');
select pg_temp.take_away('queue_succeed', 'limit_release(p_queue, gated)', 'limit_release(p_queue, p_ids)');
