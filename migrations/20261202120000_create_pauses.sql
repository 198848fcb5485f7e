-- Pauses of a key, such as that of a whole queue (`queue:NAME`), each with its row in the audit.
-- Locks: new objects only.

-- Pauses a key; what runs goes on. A pause of a paused key changes who and why.
create function spillway.limit_pause(p_key text, p_by text, p_why text) returns void
language sql security definer set search_path = pg_catalog, pg_temp as $$
  insert into spillway.operator_action (actor, action, target_kind, target, why) values (p_by, 'pause', 'limit', p_key, p_why);
  insert into spillway.limit_key as k (key, cap, paused_at, paused_by, paused_why)
  values (p_key, 1, clock_timestamp(), p_by, p_why)
  on conflict (key) do update
  set paused_at = coalesce(k.paused_at, excluded.paused_at), paused_by = excluded.paused_by, paused_why = excluded.paused_why
$$;

-- Lets a key go on, and calls who waits for it. False where it was not paused: then nothing is on record either.
create function spillway.limit_resume(p_key text, p_by text, p_why text) returns boolean
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
  update spillway.limit_key k set paused_at = null, paused_by = null, paused_why = null
  where k.key = p_key and k.paused_at is not null;
  if not found then
    return false;
  end if;
  insert into spillway.operator_action (actor, action, target_kind, target, why) values (p_by, 'resume', 'limit', p_key, p_why);
  perform spillway.limit_wake(array[p_key]);
  return true;
end
$$;

revoke all on function spillway.limit_pause(text, text, text), spillway.limit_resume(text, text, text) from public;
grant execute on function spillway.limit_pause(text, text, text), spillway.limit_resume(text, text, text)
  to spillway_operator;
