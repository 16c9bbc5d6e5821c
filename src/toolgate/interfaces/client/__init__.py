"""Talks to a Toolgate server: every request of its API, and streams that outlive connections and restarts."""

from toolgate.interfaces.client.client import Client
from toolgate.interfaces.client.sessions import BrowserSession
from toolgate.interfaces.client.stream import EventStream, StreamEvent
from toolgate.interfaces.client.sync import SyncClient, SyncStream

__all__ = ["BrowserSession", "Client", "EventStream", "StreamEvent", "SyncClient", "SyncStream"]
