"""PostgreSQL: store, bus, directory, threads, and orders to workers through PgQueuer."""
