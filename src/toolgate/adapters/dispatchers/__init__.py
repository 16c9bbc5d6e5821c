"""Dispatchers: how orders reach workers."""
