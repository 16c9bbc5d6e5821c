"""The runner: does on this machine what a server signals, as far as this machine's own policy allows it."""
