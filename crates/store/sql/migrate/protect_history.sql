alter table spillway._sqlx_migrations enable row level security;
