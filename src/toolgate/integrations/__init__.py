"""Adapters to agent frameworks: one file each, which imports the framework the user has and nothing of the others."""
