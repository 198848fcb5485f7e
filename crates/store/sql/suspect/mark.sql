update spillway.command k set alone_read_ct = $3
where k.id = $4 and exists (select from spillway.queue_held($1, $2, $3) h (held) where h.held)
returning k.id;
