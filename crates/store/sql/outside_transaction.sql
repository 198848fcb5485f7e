select now() = statement_timestamp();
