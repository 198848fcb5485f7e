-- Apart from the insert: `on conflict do update` would need the right to read the secret that it replaces.
update spillway.snaptrade_user set sealed_secret = $2, updated_at = clock_timestamp() where user_id = $1;
