"""Fetch one URL safely. Runs in the sandbox.

A name is resolved once; every address it has is vetted, and the connection goes to a vetted one. Each redirect is a
new URL with a new verdict. Bytes are counted after decoding. Proxies from the environment are ignored.
"""

from __future__ import annotations

import base64
import http.client
import socket
import ssl
import time
import zlib
from collections.abc import Iterator
from typing import Any
from urllib.parse import urljoin

from toolgate.errors import ToolExecutionError
from toolgate.guards.net import HostRules, Target, UrlRefused, parse_url
from toolgate.guards.reach import resolve
from toolgate.kernel.policy import Word

MAX_REDIRECTS = 5
CHUNK = 65_536
REDIRECTS = (301, 302, 303, 307, 308)
AGENT = "toolgate-fetch/1"


def fetch(*, url: str, hosts: HostRules, max_bytes: int, timeout_s: float, form: str) -> dict[str, Any]:
    """Return status, headers of interest and content of a URL, following redirects that the rules allow."""
    deadline = time.monotonic() + timeout_s
    target = parse_url(url)
    for hop in range(MAX_REDIRECTS + 1):
        _judge(hosts, target, is_redirect=hop > 0)
        with _Exchange(target, hosts, deadline) as exchange:
            response = exchange.get()
            location = response.headers.get("location")
            if response.status in REDIRECTS and location:
                target = parse_url(urljoin(target.url, location))
                continue
            data, truncated = _body(response, exchange, max_bytes)
            return _shown(target, response, data, truncated, form)
    raise ToolExecutionError(f"The URL redirects more than {MAX_REDIRECTS} times.")


def _judge(hosts: HostRules, target: Target, *, is_redirect: bool) -> None:
    word, reason = hosts.judge(target)
    if word is Word.DENY or (is_redirect and word is Word.ASK):
        what = "It redirects to a URL that is refused" if is_redirect else "The URL is refused"
        raise UrlRefused("denied", f"{what}: {reason}.")


class _Exchange:
    """One request on one connection to one vetted address."""

    def __init__(self, target: Target, hosts: HostRules, deadline: float) -> None:
        self._target = target
        self._hosts = hosts
        self._deadline = deadline
        self._socket: socket.socket | None = None

    def __enter__(self) -> _Exchange:
        self._socket = self._connect()
        return self

    def __exit__(self, *_: object) -> None:
        if self._socket is not None:
            self._socket.close()

    def left(self) -> float:
        """Return the seconds that are left; raise when none are."""
        seconds = self._deadline - time.monotonic()
        if seconds <= 0:
            raise ToolExecutionError(f"Fetching from '{self._target.host}' took too long.")
        if self._socket is not None and self._socket.fileno() >= 0:  # 3.13 closes it once the answer was read
            self._socket.settimeout(seconds)
        return seconds

    def _connect(self) -> socket.socket:
        failure: OSError | None = None
        for address in resolve(self._target, self._hosts):
            try:
                plain = socket.create_connection((str(address), self._target.port), timeout=self.left())
            except OSError as error:
                failure = error
                continue
            return self._secured(plain)
        raise ToolExecutionError(f"'{self._target.host}' cannot be reached: {failure}.") from failure

    def _secured(self, plain: socket.socket) -> socket.socket:
        if self._target.scheme == "http":
            return plain
        try:
            context = ssl.create_default_context()
            return context.wrap_socket(plain, server_hostname=self._target.host)
        except OSError as error:
            plain.close()
            raise ToolExecutionError(f"'{self._target.host}' gave no valid TLS connection: {error}.") from None

    def get(self) -> http.client.HTTPResponse:
        target = self._target
        host = f"[{target.host}]" if ":" in target.host else target.host
        default = {"http": 80, "https": 443}[target.scheme]
        connection = http.client.HTTPConnection(host)
        connection.sock = self._socket
        headers = {
            "Host": host if target.port == default else f"{host}:{target.port}",
            "User-Agent": AGENT,
            "Accept": "*/*",
            "Accept-Encoding": "gzip, deflate, identity",
            "Connection": "close",
        }
        self.left()
        try:
            connection.request("GET", target.path, headers=headers)
            return connection.getresponse()
        except (OSError, http.client.HTTPException) as error:
            raise ToolExecutionError(f"'{target.host}' gave no valid answer: {type(error).__name__}.") from error

    def pieces(self, response: http.client.HTTPResponse) -> Iterator[bytes]:
        """Yield the body as it comes, within the time there is."""
        while True:
            self.left()
            try:
                piece = response.read1(CHUNK)
            except (OSError, http.client.HTTPException) as error:
                raise ToolExecutionError(f"The answer of '{self._target.host}' broke off: {error}.") from error
            if not piece:
                return
            yield piece


def _body(response: http.client.HTTPResponse, exchange: _Exchange, most: int) -> tuple[bytes, bool]:
    """Return the decoded body up to a limit, and whether there was more. A small bomb stays small."""
    coding = (response.headers.get("content-encoding") or "identity").strip().lower()
    if coding not in ("identity", "gzip", "x-gzip", "deflate"):
        raise ToolExecutionError(f"The answer is encoded as {coding[:40]!r}, which was not asked for.")
    decoder = None if coding == "identity" else zlib.decompressobj(47 if "gzip" in coding else 15)
    kept = bytearray()
    for piece in exchange.pieces(response):
        room = most + 1 - len(kept)
        try:
            kept += piece[:room] if decoder is None else decoder.decompress(piece, room)
        except zlib.error:
            raise ToolExecutionError(f"The answer is not valid {coding}.") from None
        if len(kept) > most:
            return bytes(kept[:most]), True
    return bytes(kept), False


def _shown(
    target: Target, response: http.client.HTTPResponse, data: bytes, truncated: bool, form: str
) -> dict[str, Any]:
    kind = response.headers.get_content_type()
    found: dict[str, Any] = {
        "url": target.url,
        "status": response.status,
        "content_type": kind,
        "bytes": len(data),
        "truncated": truncated,
    }
    if form == "base64":
        return found | {"content": base64.b64encode(data).decode()}
    charset = response.headers.get_content_charset() or "utf-8"
    try:
        text = data.decode(charset, errors="replace")
    except LookupError:
        text = data.decode(errors="replace")
    if form == "text" and kind in ("text/html", "application/xhtml+xml"):
        found["title"], text = html_to_text(text)
    mark = f"\n[... cut off after {len(data)} bytes ...]" if truncated else ""
    return found | {"content": text + mark}


def html_to_text(html: str) -> tuple[str | None, str]:
    """Return a page's title and what a reader would see of it."""
    from selectolax.lexbor import LexborHTMLParser

    page = LexborHTMLParser(html)
    title = page.css_first("title")
    name = title.text(strip=True) if title is not None else None
    page.strip_tags(["script", "style", "noscript", "template", "svg", "head"])
    body = page.body
    lines = (body.text(separator="\n") if body is not None else "").splitlines()
    return name, "\n".join(line for line in map(str.strip, lines) if line)
