-- What a single command costs on its way in: its statements were planned anew for each call, which took longer than
-- they did. Their plan is made once, maybe while the tables are small, and serves when they are large: each row is
-- looked up by its index.
-- Locks: none.

alter function spillway.enqueue(jsonb) set plan_cache_mode = force_generic_plan;
alter function spillway.enqueue(jsonb) set enable_hashjoin = off;
alter function spillway.enqueue(jsonb) set enable_mergejoin = off;
alter function spillway.enqueue(jsonb) set enable_seqscan = off;
