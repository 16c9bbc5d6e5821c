"""One file: its store, the hints between its processes, its directory and threads, and looking after it."""
