"""The bus of nodes that share a Redis: hints go through one channel there, and nothing else does.

Redis may be lost at any time. Then hints go through the bus beneath, the store's own; and whoever might have
missed some is told to look again, every second until Redis is back.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Iterator
from time import monotonic
from typing import Any

import orjson
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from toolgate.errors import UsageError
from toolgate.kernel.call import Status
from toolgate.ports.bus import LOOK_AGAIN, Bus, Hint, Listener

CHANNEL = "toolgate:hints"
MOST_UNSENT = 10_000
PATIENCE_S = 1.0
"""How long Redis may take for anything before it counts as lost."""
LOOK_EVERY_S = 1.0
NAP_S = 0.2
BATCH = 500
log = logging.getLogger("toolgate.bus")


class RedisBus:
    """Tells listeners of this process at once, and those of other nodes through Redis or the bus beneath."""

    def __init__(self, url: str, *, beneath: Bus, origin: str) -> None:
        self._url, self._beneath, self._origin = url, beneath, origin
        self._listeners: tuple[Listener, ...] = ()
        self._lock = threading.Lock()
        self._unsent: deque[Hint] = deque()
        self._has_unsent = threading.Event()
        self._stop = threading.Event()
        self._threads: list[threading.Thread] = []
        self._leave_beneath: Callable[[], None] | None = None
        try:
            self._client = _connect(url)
        except ValueError as error:
            raise UsageError("This is not a Redis URL: write redis://host:port/0 or rediss://...") from error

    def publish(self, hint: Hint) -> None:
        self._tell(hint)
        if len(self._unsent) >= MOST_UNSENT:
            self._beneath.publish(hint)
            return
        self._unsent.append(hint)
        self._start()
        self._has_unsent.set()

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        with self._lock:
            self._listeners = (*self._listeners, listener)
        self._start()

        def unsubscribe() -> None:
            with self._lock:
                self._listeners = tuple(other for other in self._listeners if other is not listener)

        return unsubscribe

    def _tell(self, hint: Hint) -> None:
        for listener in self._listeners:
            listener(hint)

    def _start(self) -> None:
        """Begin to send and to listen, at first use."""
        if self._threads:
            return
        with self._lock:
            if self._threads or self._stop.is_set():
                return
            self._leave_beneath = self._beneath.subscribe(self._tell)
            listening = threading.Event()
            self._threads = [
                threading.Thread(target=self._listen, args=(listening,), name="toolgate-redis-listen", daemon=True),
                threading.Thread(target=self._send, name="toolgate-redis-send", daemon=True),
            ]
            for thread in self._threads:
                thread.start()
        listening.wait(PATIENCE_S)

    def _send(self) -> None:
        while True:
            self._has_unsent.wait()
            self._has_unsent.clear()
            while self._unsent:
                batch = [self._unsent.popleft() for _ in range(min(len(self._unsent), BATCH))]
                self._send_batch(batch)
            if self._stop.is_set():
                return

    def _send_batch(self, batch: list[Hint]) -> None:
        body = orjson.dumps([self._origin, [tuple(hint) for hint in batch]])
        try:
            self._client.publish(CHANNEL, body)
        except redis.RedisError as error:
            log.warning("Redis does not take hints now (%s); the store's own bus does", type(error).__name__)
            for hint in batch:
                self._beneath.publish(hint)

    def _listen(self, listening: threading.Event) -> None:
        is_lost = False
        while not self._stop.is_set():
            try:
                with self._client.pubsub() as channel:
                    channel.subscribe(CHANNEL)
                    for message in self._messages(channel):
                        if message["type"] == "message":
                            self._hear(message["data"])
                        elif message["type"] == "subscribe":
                            listening.set()
                            if is_lost:
                                log.warning("Redis is back")
                                self._tell(LOOK_AGAIN)  # what was said between the loss and now
                            is_lost = False
            except (redis.RedisError, OSError, ValueError) as error:
                if not is_lost and not self._stop.is_set():
                    log.warning("Redis is lost (%s); calls are looked at every second", type(error).__name__)
                is_lost = True
                listening.set()
                self._tell(LOOK_AGAIN)
                self._stop.wait(LOOK_EVERY_S)

    def _messages(self, channel: Any) -> Iterator[dict[str, Any]]:
        """Yield what comes until the bus is closed; a silence is questioned, for a cut line looks like a quiet one."""
        heard_at, is_asked = monotonic(), False
        while not self._stop.is_set():
            message = channel.get_message(timeout=NAP_S)
            silent_s = monotonic() - heard_at
            if message is not None:
                heard_at, is_asked = monotonic(), False
                yield message
            elif silent_s > 2 * PATIENCE_S:
                raise redis.TimeoutError("no answer")
            elif silent_s > PATIENCE_S and not is_asked:
                channel.ping()
                is_asked = True

    def _hear(self, body: bytes) -> None:
        try:
            origin, hints = orjson.loads(body)
            told = [Hint(project, call_id, Status(status), *more) for project, call_id, status, *more in hints]
        except (ValueError, TypeError):
            log.warning("a message on the channel is not a hint")
            return
        if origin != self._origin:
            for hint in told:
                self._tell(hint)

    def close(self) -> None:
        self._listeners = ()
        self._stop.set()
        self._has_unsent.set()
        for thread in self._threads:
            if thread is not threading.current_thread():
                thread.join(timeout=5)
        if self._leave_beneath is not None:
            self._leave_beneath()
        self._client.close()
        self._beneath.close()


def _connect(url: str) -> Any:
    return redis.Redis.from_url(
        url,
        socket_timeout=PATIENCE_S,
        socket_connect_timeout=PATIENCE_S,
        retry=Retry(NoBackoff(), 0),
        client_name="toolgate-bus",
    )
