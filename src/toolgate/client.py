"""The client library by the name users type: `from toolgate.client import Client, SyncClient`."""

from __future__ import annotations

from toolgate.interfaces.client import BrowserSession, Client, EventStream, StreamEvent, SyncClient, SyncStream

__all__ = ["BrowserSession", "Client", "EventStream", "StreamEvent", "SyncClient", "SyncStream"]
