"""One Alembic chain for both databases, run from code: there is no ini file to lose."""
