"""Policy as data: YAML files in, one immutable policy out.

    policy = load_policy("toolgate.yaml")

Names are loaded at first use: a gate without a policy file never imports a YAML parser.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from toolgate.policy.compile import FilePolicy
    from toolgate.policy.loader import PLACES, PolicySource, find_policy, load_policy, read_policy

_HOMES = {
    "PLACES": "loader",
    "FilePolicy": "compile",
    "PolicySource": "loader",
    "find_policy": "loader",
    "load_policy": "loader",
    "read_policy": "loader",
}

__all__ = ["PLACES", "FilePolicy", "PolicySource", "find_policy", "load_policy", "read_policy"]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'toolgate.policy' has no attribute {name!r}")
    return getattr(import_module(f"toolgate.policy.{home}"), name)
