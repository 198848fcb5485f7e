-- Runs before each file of `lacks`, in the same session: takes a guard out of the functions of that name, or of each queue
-- where the name ends in `_`; QUEUE in what stands instead becomes the queue. A guard that isn't there is an error: a
-- control that changes nothing would control nothing.
create function pg_temp.take_away(name text, guard text, instead text) returns void
language plpgsql as $$
declare
  f record;
  definition text;
  changed int := 0;
begin
  for f in
    select p.oid, p.oid::regprocedure as signature, substr(p.proname, length(name) + 1) as queue from pg_proc p
    where p.pronamespace = 'spillway'::regnamespace and p.prokind = 'f'
      and (p.proname = name or right(name, 1) = '_' and starts_with(p.proname, name))
  loop
    definition := pg_get_functiondef(f.oid);
    if position(guard in definition) = 0 then
      raise exception '% has no "%"', f.signature, guard;
    end if;
    execute replace(definition, guard, replace(instead, 'QUEUE', f.queue));
    changed := changed + 1;
  end loop;
  if changed = 0 then
    raise exception 'no function is called %', name;
  end if;
end
$$;
