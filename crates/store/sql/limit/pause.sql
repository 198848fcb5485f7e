select spillway.limit_pause($1, $2, $3)::text;
