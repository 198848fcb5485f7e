-- Row security shows what is locked here only while it is undecided; whoever comes second waits and finds nothing.
select l.id from spillway.dead_letter l where l.id = any ($1::uuid[]) order by l.id for update;
