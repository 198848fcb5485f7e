select spillway.queue_lock($1, $2, $3) as "ours!";
