"""Runners: where handlers run."""
