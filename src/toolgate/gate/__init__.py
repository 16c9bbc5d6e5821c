"""The front object: Gate, and the same for plain threads."""

from toolgate.gate.front import Gate
from toolgate.gate.sync import SyncGate

__all__ = ["Gate", "SyncGate"]
