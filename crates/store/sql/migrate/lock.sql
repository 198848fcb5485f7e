-- Held until the connection ends. The number stands for "spillway migrate" and nothing else.
select pg_advisory_lock(7811871540131)::text as locked;
