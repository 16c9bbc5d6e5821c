"""Calls that run elsewhere: who holds them, and what a worker does with an order."""
