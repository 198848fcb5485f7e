-- A replayed sync asks for a sync: without this, its run could find everything done already.
insert into spillway.account_sync as s (work_type, account_id, requested, waiting_command)
select k.payload ->> 'work_type', a.account_id, count(*), (array_agg(k.id order by k.id))[1]
from spillway.dead_letter l
join spillway.command k on k.id = l.command_id
-- Of any other payload nothing is counted; its run says what is wrong with it.
join spillway.snaptrade_account a on a.account_id = case
  when k.payload ->> 'account_id' ~ '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' then (k.payload ->> 'account_id')::uuid
end
where l.id = any ($1::uuid[]) and k.workload = 'snaptrade-account-sync'
  and k.payload ->> 'work_type' in ('holdings', 'transactions')
group by 1, 2
order by 1, 2
on conflict (work_type, account_id) do update
set requested = s.requested + excluded.requested,
  waiting_inbox = case when s.waiting_command is not null then s.waiting_inbox end,
  waiting_command = coalesce(s.waiting_command, excluded.waiting_command);
