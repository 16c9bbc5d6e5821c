"""Stores: where the truth is kept."""
