select pg_notify('spillway_' || q.name, '')::text from unnest($1::text[]) q (name);
