update spillway.account_sync s
set waiting_command = case when s.waiting_command = $3 then null else s.waiting_command end
where s.work_type = $1 and s.account_id = $2
returning s.requested, s.ok_through;
