delete from spillway.process p where p.id = $1;
