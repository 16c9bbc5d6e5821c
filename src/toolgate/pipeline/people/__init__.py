"""What people do to calls: decide, edit, cancel, settle, undo."""
