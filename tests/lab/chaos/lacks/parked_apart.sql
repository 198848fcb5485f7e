-- With parked messages in the way: a claim reads the messages of a lane in the order of their ids, those that wait for a
-- key or for a later time too, as `pgmq.read` does.
select pg_temp.take_away('queue_claim_',
  $$q.vt >= coalesce(p_since[nth + 1], '-infinity') and q.vt <= statement_timestamp()$$,
  $$q.vt + interval '0' <= statement_timestamp()$$);
select pg_temp.take_away('queue_claim_', 'order by q.vt limit p_look', 'order by q.msg_id limit p_look');
