select b.examined as "examined!", b.past as "past!", b.reached from spillway.trim_batch($1, $2, $3, $4) b;
