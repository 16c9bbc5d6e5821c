"""Redis: hints between servers, and undo data."""
