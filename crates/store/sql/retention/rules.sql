select r.rule, r.relation, r.what, extract(epoch from r.keep)::bigint as "keep_seconds!"
from spillway.retention r order by r.place;
