select message from spillway.dead_letter where id = $1;
