insert into spillway.operator_action (actor, action, target_kind, target, why, details)
select $1, $2, $3, t.target, $4, t.details
from unnest($5::text[], $6::jsonb[]) as t (target, details);
