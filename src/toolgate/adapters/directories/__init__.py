"""Directories: who there is, and the tokens they show."""
