update spillway.command k set crashes = greatest(k.crashes, $4), alone_read_ct = null
where k.id = $3 and exists (select from spillway.queue_held($1, $2, $5) h (held) where h.held)
returning k.id;
