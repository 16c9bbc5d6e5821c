"""One file per key of an entry. The file's name is the key; it is loaded by name, so there is no list to edit.

A file offers `SPEC` (the type its value must have), `build(value, site, surroundings) -> Share`, and, where
document spellings of its fields exist, `ALIASES` from the spelling to the field.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from types import ModuleType

from toolgate.policy.values import Key

GROUP = "toolgate.policy.rules"
"""The entry point group in which packages of their own offer further keys: name = key, value = module."""


@cache
def keys() -> Mapping[str, Key]:
    """Return every key an entry may have, by name."""
    names = sorted(module.name for module in pkgutil.iter_modules(__path__))
    found = {name: _key(name, import_module(f"{__name__}.{name}")) for name in names}
    for point in entry_points(group=GROUP):
        found.setdefault(point.name, _key(point.name, point.load()))
    return found


@cache
def aliases() -> Mapping[str, tuple[str, str]]:
    """Return the key and the field that every alias stands for."""
    return {alias: (key.name, field) for key in keys().values() for alias, field in key.aliases.items()}


def _key(name: str, module: ModuleType) -> Key:
    doc = (module.__doc__ or "").strip()
    return Key(name, module.SPEC, module.build, getattr(module, "ALIASES", {}), doc)
