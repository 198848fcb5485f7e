select k.key, k.cap, k.limit_now, k.in_use, k.cooldown_until, k.paused_at, k.paused_by, k.paused_why,
  (select count(*) from spillway.limit_wait w where w.key = k.key) as "waiting!"
from spillway.limit_key k
where k.in_use > 0 or k.paused_at is not null or k.cooldown_until is not null
  or exists (select from spillway.limit_wait w where w.key = k.key)
order by k.key
limit $1;
