"""All in this process: store, bus, directory and threads that end with it."""
