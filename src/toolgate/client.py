"""The client library by the name users type: `from toolgate.client import Client, SyncClient`."""

from __future__ import annotations

from toolgate.interfaces.client import Client, EventStream, StreamEvent

__all__ = ["Client", "EventStream", "StreamEvent"]
