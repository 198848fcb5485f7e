select to_regclass('supabase_migrations.schema_migrations') is not null as "exists!";
