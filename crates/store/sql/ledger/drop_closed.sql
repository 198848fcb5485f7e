select a.msg_id as "msg_id!" from spillway.queue_archive($1, array[$2::bigint], array[$3::int]) a;
