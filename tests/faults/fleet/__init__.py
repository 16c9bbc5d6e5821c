"""Many processes on one PostgreSQL, and what kills them."""
