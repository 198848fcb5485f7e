select 1 as alive;
