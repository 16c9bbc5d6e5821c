"""The one way out of a sandbox with a network: an HTTP proxy outside it, which vets every connection.

The sandbox has a network of its own with nothing in it but this proxy's port, which `listener` opened there and handed
out. A connection is asked for with CONNECT, or for plain http with a whole URL; `Reach` resolves, vets and connects. A
redirect is a new request, so it is vetted like the first. What was reached is kept for the record.
"""

from __future__ import annotations

import contextlib
import itertools
import socket
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple, Self

from toolgate.adapters.runners.sandbox.agent import AGENT_CONNECTIONS, relay
from toolgate.adapters.runners.sandbox.requests import CHUNK, BadRequest, Incoming, Request
from toolgate.errors import ToolDeniedError, ToolgateError
from toolgate.ports.confinement import Opened, Reach, Reached

PORT = 3128
"""Where the proxy is, inside: a sandbox has all ports to itself."""
_Key = tuple[str, int, str | None]
"""A host and a port, and why they were refused."""
_STOP_S = 2.0
_REASONS = {400: "Bad Request", 403: "Forbidden", 502: "Bad Gateway"}


@dataclass(frozen=True, slots=True, kw_only=True)
class ProxyLimits:
    """What one run may use: connections at once and in all, different hosts, bytes either way, and silent seconds."""

    at_once: int = 64
    connections: int = 4096
    hosts: int = 200
    total_bytes: int = 4 << 30
    idle_s: float = 120.0


def environment(reach: Reach) -> dict[str, str]:
    """Return the variables that lead programs to the proxy. What a run serves to itself needs none."""
    url = f"http://127.0.0.1:{PORT}"
    direct = "" if reach.sees_this_machine else "localhost,127.0.0.1,::1"
    found = dict.fromkeys(("http_proxy", "https_proxy", "all_proxy"), url) | {"no_proxy": direct}
    return found | {name.upper(): value for name, value in found.items()}


class Proxy:
    """Serves one run, from `with` to its end; then no connection is left.

    handed: the socket that the inside hands its port out by. This proxy closes it.
    """

    def __init__(
        self, reach: Reach, handed: socket.socket, limits: ProxyLimits | None = None, *, agent: str | None = None
    ) -> None:
        self._reach = reach
        self._agent = agent
        self._handed = handed
        self._limits = limits or ProxyLimits()
        self._lock = threading.Lock()
        self._room = threading.BoundedSemaphore(self._limits.at_once)
        self._open: set[socket.socket] = {handed}
        self._workers: set[threading.Thread] = set()
        self._counts: dict[_Key, int] = {}
        self._total = 0
        self._is_over = False

    def __enter__(self) -> Self:
        self._start(self._serve)
        return self

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._is_over = True
            left, workers = [*self._open], [*self._workers]
        for one in left:
            _hang_up(one)
        until = time.monotonic() + _STOP_S
        for worker in workers:  # one that still waits for a name's address closes what it gets by itself
            worker.join(max(0.0, until - time.monotonic()))

    def reached(self) -> tuple[Reached, ...]:
        """Return what was connected to or refused, in order."""
        with self._lock:
            return tuple(
                Reached(host=host, port=port, bytes=count, refused=refused)
                for (host, port, refused), count in self._counts.items()
            )

    def _start(self, work: Callable[..., None], *args: object) -> None:
        thread = threading.Thread(target=self._work, args=(work, *args), name="toolgate-proxy", daemon=True)
        with self._lock:
            self._workers.add(thread)
        thread.start()

    def _work(self, work: Callable[..., None], *args: object) -> None:
        try:
            # A connection that breaks, or ends in the middle of a word, concerns the two who had it.
            with contextlib.suppress(OSError, EOFError):
                work(*args)
        finally:
            with self._lock:
                self._workers.discard(threading.current_thread())

    @contextlib.contextmanager
    def _kept(self, one: socket.socket) -> Iterator[socket.socket]:
        """Have a socket hung up when the run ends, and closed when its user is done."""
        with one:
            with self._lock:
                if self._is_over:
                    raise ConnectionAbortedError("the run is over")
                self._open.add(one)
            try:
                yield one
            finally:
                with self._lock:
                    self._open.discard(one)

    def _serve(self) -> None:
        """Take the port that the inside hands out, and every connection made to it."""
        with self._kept(self._handed):
            _, descriptors, _, _ = socket.recv_fds(self._handed, 1, 2, socket.MSG_CMSG_CLOEXEC)
        if not descriptors:
            return  # the sandbox ended before anything ran in it
        for number in descriptors[1:]:
            self._start(self._lend, socket.socket(fileno=number))
        with self._kept(socket.socket(fileno=descriptors[0])) as listening:
            for number in itertools.count(1):
                self._room.acquire()
                try:
                    client, _ = listening.accept()
                except OSError:
                    self._room.release()
                    raise
                self._start(self._attend, client, number)

    def _lend(self, listening: socket.socket) -> None:
        """Let the inside have the user's agent sign."""
        with self._kept(listening):
            for _ in range(AGENT_CONNECTIONS):
                client, _ = listening.accept()
                if self._agent is None:
                    client.close()
                else:
                    self._start(self._sign, client, self._agent)

    def _sign(self, client: socket.socket, agent: str) -> None:
        with self._kept(client), self._kept(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)) as there:
            for one in (client, there):
                one.settimeout(self._limits.idle_s)
            there.connect(agent)
            relay(client, there)

    def _attend(self, client: socket.socket, number: int) -> None:
        try:
            with self._kept(client):
                client.settimeout(self._limits.idle_s)
                self._answer(client, number)
        finally:
            self._room.release()

    def _answer(self, client: socket.socket, number: int) -> None:
        incoming = Incoming(client)
        try:
            request = Request.read(incoming)
            opened = self._opened(_url_of(request), number)
        except BadRequest as problem:
            _refuse(client, 400, f"The request is refused: {problem}.")
            return
        except ToolgateError as problem:
            _refuse(client, 403 if isinstance(problem, ToolDeniedError) else 502, str(problem))
            return
        with self._kept(opened.connection.socket) as server:
            server.settimeout(self._limits.idle_s)
            exchange = _Exchange(self, client, server, opened.key)
            if request.method == "CONNECT":
                exchange.tunnel(incoming)
            else:
                exchange.forward(request, incoming, opened.connection)

    def _opened(self, url: str, number: int) -> _Connected:
        host, port = self._reach.name(url)
        if number > self._limits.connections:
            raise ToolDeniedError(f"A command may make at most {self._limits.connections} connections.")
        try:
            connection = self._reach.open(url)
        except ToolgateError as problem:
            self._count((host, port, str(problem)), 0)
            raise
        try:
            self._count((host, port, None), 0)
        except ToolDeniedError:
            connection.socket.close()
            raise
        return _Connected((host, port, None), connection)

    def _count(self, key: _Key, size: int) -> None:
        """Add to what the record says of a host; nothing is reached that it has no room for."""
        with self._lock:
            if key not in self._counts and len(self._counts) >= self._limits.hosts:
                raise ToolDeniedError(f"A command may ask for at most {self._limits.hosts} different hosts.")
            self._counts[key] = self._counts.get(key, 0) + size
            self._total += size

    def pass_on(self, key: _Key, data: bytes, to: socket.socket) -> None:
        """Send a piece on, counted; ConnectionAbortedError once the run has used what it may."""
        self._count(key, len(data))
        if self._total > self._limits.total_bytes:
            raise ConnectionAbortedError("the run has used all the bytes it may")
        to.sendall(data)

    @property
    def idle_s(self) -> float:
        return self._limits.idle_s

    def beside(self, work: Callable[..., None], *args: object) -> threading.Thread:
        """Do something on a thread of its own; what breaks there ends there."""
        thread = threading.Thread(target=self._work, args=(work, *args), name="toolgate-proxy", daemon=True)
        thread.start()
        return thread


class _Exchange:
    """Two connections and what goes between them."""

    def __init__(self, proxy: Proxy, client: socket.socket, server: socket.socket, key: _Key) -> None:
        self._proxy = proxy
        self._client = client
        self._server = server
        self._key = key
        self._active_at = time.monotonic()

    def tunnel(self, incoming: Incoming) -> None:
        """Pass everything on, both ways, until both are done or silent."""
        self._client.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
        self._proxy.pass_on(self._key, incoming.rest, self._server)
        there = self._proxy.beside(self._pump, self._client, self._server)
        try:
            self._pump(self._server, self._client)
        finally:
            there.join()

    def _pump(self, source: socket.socket, to: socket.socket) -> None:
        try:
            while data := self._received(source):
                self._active_at = time.monotonic()
                self._proxy.pass_on(self._key, data, to)
        except OSError:
            _hang_up(source)
            _hang_up(to)
            raise
        _end(to)

    def _received(self, source: socket.socket) -> bytes:
        """Return the next piece. Silence is what neither direction breaks."""
        while True:
            try:
                return source.recv(CHUNK)
            except TimeoutError:
                if time.monotonic() - self._active_at >= self._proxy.idle_s:
                    raise

    def forward(self, request: Request, incoming: Incoming, opened: Opened) -> None:
        """Pass one request on, and its answer; nothing that comes after it."""
        try:
            self._proxy.pass_on(self._key, request.head(opened.path, opened.authority), self._server)
            if request.waits:
                self._client.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
            for piece in request.body(incoming):
                self._proxy.pass_on(self._key, piece, self._server)
        except BadRequest as problem:
            _refuse(self._client, 400, f"The request is refused: {problem}.")
            return
        except BrokenPipeError:
            pass  # it has answered before it read everything
        while data := self._server.recv(CHUNK):
            self._proxy.pass_on(self._key, data, self._client)
        _end(self._client)


class _Connected(NamedTuple):
    key: _Key
    connection: Opened


def _url_of(request: Request) -> str:
    if request.method == "CONNECT":
        return f"https://{request.target}/"
    if not request.target.lower().startswith("http://"):
        raise BadRequest("a proxy is asked with a whole http:// address, or with CONNECT")
    return request.target


def _refuse(client: socket.socket, status: int, text: str) -> None:
    body = (text + "\n").encode()
    head = f"HTTP/1.1 {status} {_REASONS[status]}\r\nContent-Type: text/plain; charset=utf-8\r\n"
    client.sendall(f"{head}Content-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode() + body)
    _end(client)


def _end(one: socket.socket) -> None:
    """Say that nothing more comes."""
    with contextlib.suppress(OSError):  # it is gone already
        one.shutdown(socket.SHUT_WR)


def _hang_up(one: socket.socket) -> None:
    """Wake whoever waits for a socket: nothing comes of it any more."""
    with contextlib.suppress(OSError):  # it is gone already
        one.shutdown(socket.SHUT_RDWR)
