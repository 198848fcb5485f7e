select spillway.queue_succeed($1, $2, $3, $4, $5, $6, $7) as "settled?";
