select spillway.sees_all_sessions() as "sees_all!";
