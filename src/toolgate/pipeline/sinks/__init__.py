"""Telling a project's sink of its events, out of the record."""
