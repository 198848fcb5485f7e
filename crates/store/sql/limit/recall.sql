select spillway.limit_recall() as "heard!";
