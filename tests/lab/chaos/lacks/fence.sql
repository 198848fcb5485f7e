-- Without the fence: a beat, a settlement, a hand-back or a dead letter takes any lease of the message for its own.
select pg_temp.take_away('queue_extend_', ' and q.read_ct = w.ct', '');
select pg_temp.take_away('queue_extend_', 'select q.msg_id, q.read_ct, q.msg_id = any', 'select q.msg_id, w.ct, q.msg_id = any');
select pg_temp.take_away('queue_postpone_', ' and q.read_ct = w.ct', '');
select pg_temp.take_away('queue_archive_', ' and q.read_ct = w.ct', '');
select pg_temp.take_away('queue_succeed_', ' and q.read_ct = done.ct', '');
select pg_temp.take_away('queue_lock_', ' and q.read_ct = p_ct', '');
