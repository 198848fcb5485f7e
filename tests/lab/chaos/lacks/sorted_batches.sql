-- Without an order: beats, settlements, hand-backs and dead letters lock the messages of a batch in any order. The guard of
-- this name in the programs is the order of the rows that a gateway writes.
select pg_temp.take_away('queue_extend_', 'order by q.msg_id for update of q', 'order by random() for update of q');
select pg_temp.take_away('queue_postpone_', 'order by q.msg_id for update of q', 'order by random() for update of q');
select pg_temp.take_away('queue_archive_', 'order by q.msg_id for update of q', 'order by random() for update of q');
select pg_temp.take_away('queue_succeed_', 'order by d.id', 'order by random()');
