select queue_name as "queue_name!" from pgmq.meta;
