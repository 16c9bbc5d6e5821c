"""How an extra, a set of libraries that is not always there, is installed."""

from __future__ import annotations


def how_to_install(extra: str) -> str:
    """Say how to get an extra. No package index has Toolgate yet, so it comes from a checkout."""
    return f"run `pip install '.[{extra}]'` in a checkout of Toolgate"
