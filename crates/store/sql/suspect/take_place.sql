insert into spillway.queue_alone as a (queue, msg_id, read_ct) values ($1, $2, $3)
on conflict (queue) do update set msg_id = excluded.msg_id, read_ct = excluded.read_ct
where not spillway.queue_held(a.queue, a.msg_id, a.read_ct)
  or (a.msg_id = excluded.msg_id and a.read_ct = excluded.read_ct)
returning a.queue;
