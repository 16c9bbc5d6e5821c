"""Buses: who is woken."""
