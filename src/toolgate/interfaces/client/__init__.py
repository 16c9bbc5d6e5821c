"""Talks to a Toolgate server: every request of its API, and streams that outlive connections and restarts."""

from toolgate.interfaces.client.client import Client
from toolgate.interfaces.client.stream import EventStream, StreamEvent

__all__ = ["Client", "EventStream", "StreamEvent"]
