insert into spillway.snaptrade_user (user_id, sealed_secret) values ($1, $2) on conflict (user_id) do nothing;
