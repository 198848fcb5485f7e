-- Open dead letters that match, oldest first, locked until the transaction ends.
select l.id from spillway.dead_letter l
where l.state = 'open' and ($1::text is null or l.workload = $1) and ($2::text is null or l.reason = $2)
  and ($3::bigint is null or l.died_at <= clock_timestamp() - $3::bigint * interval '1 s')
order by l.id
limit $4
for update;
