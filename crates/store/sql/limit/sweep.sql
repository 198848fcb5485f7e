select spillway.limit_sweep($1) as "mended!";
