"""What SQLite and PostgreSQL share: rows, tables, migrations, and bringing changes to one writer."""
