select requested as "requested!", id as "id!", outcome as "outcome!" from spillway.enqueue($1);
