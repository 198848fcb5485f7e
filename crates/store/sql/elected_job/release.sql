update spillway.elected_job j set until = clock_timestamp() where j.name = $1 and j.holder = $2;
