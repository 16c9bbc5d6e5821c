"""Renderings of what a gate did, for those who watch: log records and metrics."""
