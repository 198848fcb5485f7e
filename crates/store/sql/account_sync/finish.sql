update spillway.account_sync s set ok_through = greatest(s.ok_through, $3)
where s.work_type = $1 and s.account_id = $2;
