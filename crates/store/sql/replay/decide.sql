update spillway.dead_letter l set state = $2, decided_at = clock_timestamp(), decided_by = $3
where l.id = any ($1::uuid[]) and l.state = 'open';
