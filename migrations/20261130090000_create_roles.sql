-- Roles of the platform with least rights, and Supabase's three where they are missing.
-- Locks: nothing but single rows of the role catalogue, which is shared by all databases of the cluster.

-- Another database of the cluster may be doing the same at this moment: what it made is taken as made.
do $$
declare
  wanted text;
begin
  foreach wanted in array array[
    'service_role', 'authenticated', 'anon', 'spillway_gateway', 'spillway_worker', 'spillway_operator'
  ] loop
    if not exists (select from pg_roles where rolname = wanted) then
      begin
        execute format('create role %I nologin', wanted);
      exception when duplicate_object or unique_violation then
        null;
      end;
    end if;
  end loop;
end
$$;

-- Role settings apply at login, so a login of its own (`alter role spillway_gateway login …`) gets them; the
-- processes keep a deadline of their own a second above. Only what differs is written, and a concurrent write
-- of the same catalogue row ("tuple concurrently updated", XX000) is tried again.
do $$
declare
  setting record;
  tries int;
begin
  for setting in
    select role, name, value from (values
      ('spillway_gateway', 'statement_timeout', '5s'),
      ('spillway_gateway', 'lock_timeout', '2s'),
      ('spillway_gateway', 'idle_in_transaction_session_timeout', '10s'),
      ('spillway_worker', 'statement_timeout', '5s'),
      ('spillway_worker', 'lock_timeout', '3s'),
      ('spillway_worker', 'idle_in_transaction_session_timeout', '20s'),
      ('spillway_operator', 'statement_timeout', '30s'),
      ('spillway_operator', 'lock_timeout', '5s'),
      ('spillway_operator', 'idle_in_transaction_session_timeout', '30s')
    ) as wanted (role, name, value)
  loop
    tries := 0;
    loop
      exit when exists (
        select from pg_db_role_setting s
        join pg_roles r on r.oid = s.setrole
        where s.setdatabase = 0 and r.rolname = setting.role
          and format('%s=%s', setting.name, setting.value) = any (s.setconfig)
      );
      begin
        execute format('alter role %I set %I = %L', setting.role, setting.name, setting.value);
      exception when internal_error then
        tries := tries + 1;
        if tries > 50 then
          raise;
        end if;
        perform pg_sleep(0.02);
      end;
    end loop;
  end loop;
end
$$;
