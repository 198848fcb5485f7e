-- A crash counted as an attempt: a claim that ended without a word is charged to each message that it held, whoever ended
-- the process. `silent_ends` are those that were charged.
alter table spillway.command add column silent_ends int not null default 0;
select pg_temp.take_away('queue_claim_', $$if ids <> '{}' then$$, $$if ids <> '{}' then
        update spillway.command k set attempts = k.attempts + 1, silent_ends = q.read_ct - 2 * k.outcomes
        from unnest(ids, commands) d (msg_id, command), pgmq.q_QUEUE q
        where q.msg_id = d.msg_id and k.id = d.command and k.finished_at is null
          and q.read_ct - 2 * k.outcomes > k.silent_ends;$$);
