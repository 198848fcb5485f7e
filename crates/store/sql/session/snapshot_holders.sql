select s.kind as "kind!", s.pid, s.login, s.application, s.state, s.transactions as "transactions!", s.held_seconds,
  s.idle_seconds, s.statement
from spillway.snapshot_holders() s
order by s.transactions desc, s.held_seconds desc nulls last;
