select spillway.limit_resume($1) as "was_paused!";
