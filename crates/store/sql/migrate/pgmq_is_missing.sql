select to_regnamespace('pgmq') is null
  and not exists (select from pg_available_extensions where name = 'pgmq') as "missing!";
