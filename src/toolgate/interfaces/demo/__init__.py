"""The demo: a real workspace, server, runner and agent, and a story that ends with everything undone and verified."""
