"""The gate behind the decorated functions: one for the process, in memory until the host gives another."""

from __future__ import annotations

import threading

from toolgate.bootstrap import open as open_gate
from toolgate.gate import Gate
from toolgate.kernel.misuse import explained
from toolgate.kernel.registry import ToolRegistry
from toolgate.kernel.tool import ToolDefinition

_lock = threading.Lock()
_tools = ToolRegistry()
_gate: Gate | None = None


def offer(definition: ToolDefinition) -> None:
    """Make a decorated function known: every gate behind this door offers it, so that an approval can be resumed."""
    with _lock:
        _tools.add(definition)
        if _gate is not None:
            _gate.register(definition)


def get_hitl_gate() -> Gate:
    """Return the gate decorated functions run through; without `set_hitl_gate` it lives in memory."""
    global _gate
    with _lock:
        if _gate is None:
            _gate = open_gate("memory://", tools=_tools)
        return _gate


@explained
def set_hitl_gate(gate: Gate) -> None:
    """Run decorated functions through this gate from now on. The host keeps it and closes it."""
    global _gate
    with _lock:
        for definition in _tools:
            gate.register(definition)
        _gate = gate


def clear_hitl_gate() -> Gate | None:
    """Forget the gate and return it, so that whoever wants to can close it; the next call opens another."""
    global _gate
    with _lock:
        gate, _gate = _gate, None
        return gate
