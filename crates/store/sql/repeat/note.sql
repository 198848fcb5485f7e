-- The latest five stay; rows are written in the order of their ids.
insert into spillway.inbox_repeat as r (inbox_id, duplicates, coalesced, first_at, last_at, latest)
select n.inbox_id, count(*) filter (where not n.coalesced), count(*) filter (where n.coalesced), min(n.at),
  max(n.at), jsonb_path_query_array(jsonb_agg(n.latest -> 0 order by n.at desc), '$[0 to 4]')
from unnest($1::uuid[], $2::boolean[], $3::timestamptz[], $4::jsonb[]) as n (inbox_id, coalesced, at, latest)
group by n.inbox_id
order by n.inbox_id
on conflict (inbox_id) do update
set duplicates = r.duplicates + excluded.duplicates, coalesced = r.coalesced + excluded.coalesced,
  first_at = least(r.first_at, excluded.first_at), last_at = greatest(r.last_at, excluded.last_at),
  latest = jsonb_path_query_array(excluded.latest || r.latest, '$[0 to 4]');
