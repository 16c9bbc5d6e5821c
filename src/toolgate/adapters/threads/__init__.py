"""Where conversations and the agent's runs are kept; one file per kind of store."""
