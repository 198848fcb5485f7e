select k.id from spillway.command k where k.id = $1 and k.finished_at is null for update;
