select d.due as "due!" from spillway.queue_depth($1, $2) d;
