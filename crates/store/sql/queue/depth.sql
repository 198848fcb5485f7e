select d.due as "due!", d.later as "later!", d.oldest_due_at as "oldest_due_at?",
  (select count(*) from spillway.dead_letter l where l.queue = $1 and l.state = 'open') as "open_dead_letters!"
from spillway.queue_depth($1, $2) d;
