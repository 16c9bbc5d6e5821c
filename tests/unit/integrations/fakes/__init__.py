"""Stand-ins for frameworks that are not installed here: what an adapter touches, as the real ones were seen to do it.

`make test-real` plays the same with the frameworks themselves.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any


@contextmanager
def standing_in(adapter: str, version: str, **modules: dict[str, Any]) -> Iterator[ModuleType]:
    """Import an adapter over stand-ins for what it imports; `modules` are their contents, with `__` for each dot."""
    name, before = f"toolgate.integrations.{adapter}", dict(sys.modules)
    real = importlib.metadata.version
    for spelled, content in modules.items():
        dotted = spelled.replace("__", ".")
        for depth in range(1, dotted.count(".") + 2):
            part = ".".join(dotted.split(".")[:depth])
            sys.modules.setdefault(part, ModuleType(part))
        vars(sys.modules[dotted]).update(content)
    sys.modules.pop(name, None)
    importlib.metadata.version = lambda _name: version  # type: ignore[assignment]  # for as long as this stands
    try:
        yield importlib.import_module(name)
    finally:
        importlib.metadata.version = real
        for added in set(sys.modules) - set(before):
            if added == name or not added.startswith("toolgate."):
                del sys.modules[added]
        sys.modules.update({key: value for key, value in before.items() if sys.modules.get(key) is not value})
