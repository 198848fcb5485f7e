-- A command for later becomes a request when it starts; until then it is shown as accepted.
update spillway.account_sync s
set requested = s.requested + (select count(*) from spillway.command k where k.id = $3 and k.status = 'accepted'),
  waiting_command = case when s.waiting_command = $3 then null else s.waiting_command end
where s.work_type = $1 and s.account_id = $2
returning s.requested, s.ok_through;
