insert into spillway.account_sync as s (work_type, account_id, requested, waiting_command, waiting_inbox)
select r.work_type, r.account_id, r.n, r.command_id, r.inbox_id
from unnest($1::text[], $2::uuid[], $3::bigint[], $4::uuid[], $5::uuid[]) with ordinality
  as r (work_type, account_id, n, command_id, inbox_id, place)
order by r.place
on conflict (work_type, account_id) do update
set requested = s.requested + excluded.requested,
  waiting_inbox = case when s.waiting_command is null then excluded.waiting_inbox else s.waiting_inbox end,
  waiting_command = coalesce(s.waiting_command, excluded.waiting_command)
returning work_type, account_id, waiting_command as "waiting_command!", waiting_inbox;
