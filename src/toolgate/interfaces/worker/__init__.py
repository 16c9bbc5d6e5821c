"""The worker: a process that runs tools for any number of servers."""
