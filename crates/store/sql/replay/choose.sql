-- Open dead letters that match, oldest first, locked until the transaction ends. Those that can't be replayed come
-- last: however many they are, they never keep the others out.
select l.id from spillway.dead_letter l
left join spillway.command k on k.id = l.command_id
where l.state = 'open' and ($1::text is null or l.workload = $1) and ($2::text is null or l.reason = $2)
  and ($3::bigint is null or l.died_at <= clock_timestamp() - $3::bigint * interval '1 s')
order by
  coalesce(k.status = 'dead_lettered' and 'replay_same_input' = any (l.policies) and l.reason = any ($5::text[]), false)
    desc, l.id
limit $4
for update of l;
