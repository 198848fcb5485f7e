select spillway.limit_resume($1, $2, $3) as "was_paused!";
