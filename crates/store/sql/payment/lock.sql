insert into spillway.payment as p (tenant, payment_id) values ($1, $2)
on conflict (tenant, payment_id) do update set applied_seq = p.applied_seq;
