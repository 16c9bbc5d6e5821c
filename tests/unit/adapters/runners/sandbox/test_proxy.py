"""The network of a sandboxed command: through the proxy that vets each connection, and in no other way."""

from __future__ import annotations

import http.server
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from toolgate.adapters.runners.sandbox.backend import Files, sandbox_user
from toolgate.adapters.runners.sandbox.bubblewrap import Bubblewrap
from toolgate.adapters.runners.sandbox.landlock import Landlock
from toolgate.adapters.runners.sandbox.proxy import Proxy, ProxyLimits
from toolgate.errors import SandboxError
from toolgate.guards.net import HostRules
from toolgate.guards.reach import HostReach
from toolgate.ports.confinement import SECRET_FILE, Confined, Finished, Reached, Secret


class Pages(http.server.BaseHTTPRequestHandler):
    """Answers with what it was asked; `/to/URL` redirects there."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        size = int(self.headers.get("content-length") or 0)
        asked = self.rfile.read(size) if size else self._chunks()
        if self.path.startswith("/to/"):
            self.send_response(302)
            self.send_header("Location", self.path.removeprefix("/to/"))
        else:
            self.send_response(200)
        names = ",".join(sorted(name.lower() for name in self.headers if name.lower() != "user-agent"))
        body = f"{self.command} {self.path} {self.headers['host']} [{names}] ".encode() + asked
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_POST = do_GET

    def _chunks(self) -> bytes:
        found = b""
        while self.headers.get("transfer-encoding") == "chunked":
            size = int(self.rfile.readline(), 16)
            found += self.rfile.read(size)
            self.rfile.readline()
            if size == 0:
                break
        return found

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


class Server(http.server.ThreadingHTTPServer):
    def handle_error(self, *_: Any) -> None:
        """Say nothing of requests that end in the middle."""


@pytest.fixture
def port() -> Iterator[int]:
    with Server(("127.0.0.1", 0), Pages) as serving:
        threading.Thread(target=serving.serve_forever, daemon=True).start()
        yield serving.server_address[1]
        serving.shutdown()


@pytest.fixture(scope="module")
def sandbox(files: Files) -> Bubblewrap:
    return Bubblewrap(sandbox_user(None, None), files)


def reach(*ports: int, **more: Any) -> HostReach:
    return HostReach(HostRules(**{"ports": ports or (80, 443), "allow_networks": ("127.0.0.1/32",), **more}))


def run(sandbox: Bubblewrap, *argv: str, to: HostReach, **more: Any) -> Finished:
    return sandbox.run(Confined(argv=argv, reach=to, timeout_s=30, **more))


def curl(sandbox: Bubblewrap, *argv: str, to: HostReach) -> Finished:
    return run(sandbox, "/usr/bin/curl", "-sS", *argv, to=to)


def test_a_command_reaches_an_allowed_host_and_the_result_says_so(sandbox: Bubblewrap, port: int) -> None:
    finished = curl(sandbox, f"http://127.0.0.1:{port}/page?x=1", to=reach(port))
    assert finished.stdout.startswith(f"GET /page?x=1 127.0.0.1:{port} [accept,connection,host] ".encode())
    (reached,) = finished.network
    assert (reached.host, reached.port, reached.refused) == ("127.0.0.1", port, None)
    assert reached.bytes > len(finished.stdout)


def test_a_tunnel_carries_both_ways(sandbox: Bubblewrap, port: int) -> None:
    finished = curl(sandbox, "-p", "-d", "x" * 100_000, f"http://127.0.0.1:{port}/", to=reach(port))
    assert finished.stdout.endswith(b"x" * 100_000)
    assert finished.network[0].bytes > 200_000


@pytest.mark.parametrize("more", [(), ("-H", "Transfer-Encoding: chunked"), ("-H", "Expect: 100-continue")])
def test_a_body_arrives_whole(sandbox: Bubblewrap, port: int, workspace: Path, more: tuple[str, ...]) -> None:
    (workspace / "body").write_bytes(bytes(range(256)) * 8192)
    line = ("/usr/bin/curl", "-sS", "--data-binary", "@body", *more, f"http://127.0.0.1:{port}/")
    finished = run(sandbox, *line, to=reach(port), cwd=str(workspace), readable=(str(workspace),), output_bytes=1 << 23)
    assert finished.stdout.endswith(bytes(range(256)) * 8192), finished.stderr


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("http://169.254.169.254/latest/meta-data", "metadata"),
        ("https://169.254.169.254/", "metadata"),
        ("http://[::ffff:169.254.169.254]/", "mapped of metadata"),
        ("http://[64:ff9b::a9fe:a9fe]/", "NAT64 of metadata"),
        ("http://[fd00:ec2::254]/", "metadata"),
        ("https://[::1]/", "loopback"),
        ("http://10.0.0.1/", "private"),
        ("http://127.0.0.2/", "loopback"),
        ("http://0.0.0.0/", "this network"),
        ("http://localhost:22/", "port 22 is not allowed"),
    ],
)
def test_what_is_not_public_is_refused_with_the_reason(sandbox: Bubblewrap, url: str, why: str) -> None:
    finished = curl(sandbox, "-g", url, to=reach())
    (reached,) = finished.network
    assert why in str(reached.refused)
    assert reached.bytes == 0
    assert why in finished.stdout.decode() or "403" in finished.stderr.decode()


@pytest.mark.parametrize("url", ["http://2130706433/", "http://0x7f.1/", "http://017700000001/", "http://127.1/"])
def test_addresses_in_disguise_are_refused(sandbox: Bubblewrap, url: str) -> None:
    line = (f"GET {url} HTTP/1.1\r\n\r\n", f"CONNECT {url[7:-1]}:443 HTTP/1.1\r\n\r\n")
    for said in line:
        assert b" 403 " in raw(said, reach())


def test_a_redirect_to_a_private_address_is_refused(sandbox: Bubblewrap, port: int) -> None:
    finished = curl(sandbox, "-L", f"http://127.0.0.1:{port}/to/http://169.254.169.254/", to=reach(80, port))
    assert b"metadata" in finished.stdout
    assert [one.refused is None for one in finished.network] == [True, False]


def test_a_name_is_resolved_once_and_the_vetted_address_connected_to(
    port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = iter(["127.0.0.1", "169.254.169.254"])
    asked: list[str] = []

    def resolved(host: str, number: int, **_: Any) -> Any:
        asked.append(host)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (next(answers), number))]

    original = socket.getaddrinfo
    monkeypatch.setattr(
        socket,
        "getaddrinfo",
        lambda host, *rest, **more: (
            resolved(host, *rest[:1]) if host == "rebind.example" else original(host, *rest, **more)
        ),
    )
    request = f"GET http://rebind.example:{port}/ HTTP/1.1\r\nHost: other.example\r\n\r\n"
    assert f"GET / rebind.example:{port} ".encode() in raw(request, reach(port))
    assert asked == ["rebind.example"]
    assert b"metadata" in raw(request, reach(port))


def test_hosts_that_the_policy_denies_or_asks_about_are_refused(port: int) -> None:
    rules = reach(port, allow=("127.0.0.1",), ask=("asked.example",), deny=("denied.example",))
    assert b"covered by 'denied.example'" in raw(f"GET http://denied.example:{port}/ HTTP/1.1\r\n\r\n", rules)
    assert b"cannot wait for an answer" in raw(f"CONNECT asked.example:{port} HTTP/1.1\r\n\r\n", rules)
    assert b"is not in the policy" in raw(f"CONNECT third.example:{port} HTTP/1.1\r\n\r\n", rules)


PROBE = """
import socket
for family, kind, address in (
    (socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", {port})),
    (socket.AF_INET, socket.SOCK_STREAM, ("93.184.216.34", 80)),
    (socket.AF_INET6, socket.SOCK_STREAM, ("::1", {port})),
    (socket.AF_INET, socket.SOCK_DGRAM, ("93.184.216.34", 53)),
):
    try:
        with socket.socket(family, kind) as one:
            one.settimeout(5)
            one.connect(address)
            print("reached", address)
    except OSError as error:
        print("refused")
for number in range(3, 256):
    try:
        socket.socket(fileno=number)
        print("left open", number)
    except OSError:
        pass
"""


def test_raw_sockets_reach_nothing_and_no_socket_is_left_open(sandbox: Bubblewrap, port: int) -> None:
    finished = run(sandbox, "/usr/bin/python3", "-I", "-c", PROBE.format(port=port), to=reach(port))
    assert finished.stdout.decode().split() == ["refused"] * 4, finished.stderr
    assert finished.network == ()


def test_what_a_run_serves_to_itself_needs_no_proxy(sandbox: Bubblewrap) -> None:
    public = HostReach(HostRules())
    script = "python3 -I -m http.server -b 127.0.0.1 8000 >/dev/null 2>&1 & "
    script += "curl -sS --retry 20 --retry-connrefused --retry-delay 1 http://127.0.0.1:8000/ -o /dev/null && echo ok"
    finished = run(sandbox, "/bin/sh", "-c", script + "; kill %1", to=public)
    assert finished.stdout == b"ok\n", finished.stderr
    assert finished.network == ()


def test_where_only_landlock_works_such_a_command_is_refused(files: Files) -> None:
    with pytest.raises(SandboxError, match="needs bubblewrap"):
        Landlock(sandbox_user(None, None), files).run(Confined(argv=("/bin/true",), reach=reach()))


def test_a_program_that_cannot_be_started_is_told_as_such(sandbox: Bubblewrap, workspace: Path) -> None:
    with pytest.raises(SandboxError, match="/usr/bin/no-such-program: No such file or directory"):
        run(sandbox, "/usr/bin/no-such-program", to=reach())
    program = workspace / "file.txt"
    program.write_text("#!/no/such/interpreter\n")
    program.chmod(0o755)
    with pytest.raises(SandboxError, match=f"listener: failed to execute {program}: No such file or directory"):
        run(sandbox, str(program), to=reach(), readable=(str(workspace),))


def raw(said: str | bytes, to: HostReach, limits: ProxyLimits | None = None) -> bytes:
    """Return what the proxy answers to these bytes."""
    answer, _ = exchange(said, to, limits)
    return answer


def exchange(said: str | bytes, to: HostReach, limits: ProxyLimits | None = None) -> tuple[bytes, tuple[Reached, ...]]:
    ours, theirs = socket.socketpair()
    with socket.socket() as listening, theirs, Proxy(to, ours, limits) as proxy:
        listening.bind(("127.0.0.1", 0))
        listening.listen(8)
        socket.send_fds(theirs, [b"x"], [listening.fileno()])
        with socket.create_connection(listening.getsockname(), timeout=30) as client:
            client.sendall(said.encode() if isinstance(said, str) else said)
            client.shutdown(socket.SHUT_WR)
            answer = b"".join(iter(lambda: client.recv(65_536), b""))
        return answer, proxy.reached()


BAD = [
    "GET / HTTP/1.1\r\n\r\n",
    "GET https://127.0.0.1/ HTTP/1.1\r\n\r\n",
    "GET http://127.0.0.1/ HTTP/2\r\n\r\n",
    "GET http://127.0.0.1/ extra HTTP/1.1\r\n\r\n",
    "GET http://127.0.0.1/ HTTP/1.1\r\nbroken\r\n\r\n",
    "GET http://127.0.0.1/ HTTP/1.1\r\n folded: x\r\n\r\n",
    "GET http://127.0.0.1/ HTTP/1.1\r\nX: a\x00b\r\n\r\n",
    "POST http://127.0.0.1/ HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nx",
    "POST http://127.0.0.1/ HTTP/1.1\r\nContent-Length: +1\r\n\r\nx",
    "POST http://127.0.0.1/ HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "POST http://127.0.0.1/ HTTP/1.1\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
    "GET http://127.0.0.1/ö HTTP/1.1\r\n\r\n",
    "GET http://127.0.0.1/ HTTP/1.1\r\nX: " + "x" * 70_000 + "\r\n\r\n",
    "GET http://127.0.0.1/ HTTP/1.1\r\n" + "X: y\r\n" * 20_000 + "\r\n",
]


@pytest.mark.parametrize("said", BAD)
def test_what_two_readers_could_read_differently_is_refused(said: str) -> None:
    assert raw(said, reach()).startswith(b"HTTP/1.1 400 ")


@pytest.mark.parametrize("chunks", ["zz\r\n", "2\r\nabc\r\n0\r\n\r\n"])
def test_a_body_with_broken_chunks_is_refused(port: int, chunks: str) -> None:
    head = f"POST http://127.0.0.1:{port}/ HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"
    assert raw(head + chunks, reach(port)).startswith(b"HTTP/1.1 400 ")


@pytest.mark.parametrize("secret", ["user:password@127.0.0.1", "127.0.0.1%00.example", "a b"])
def test_an_odd_host_is_refused(secret: str) -> None:
    assert raw(f"CONNECT {secret}:443 HTTP/1.1\r\n\r\n", reach()).startswith((b"HTTP/1.1 403 ", b"HTTP/1.1 400 "))


def test_a_second_request_behind_the_first_goes_nowhere(port: int) -> None:
    one = f"GET http://127.0.0.1:{port}/one HTTP/1.1\r\nHost: x\r\nConnection: keep-alive, X-Hop\r\nX-Hop: 1\r\n\r\n"
    answer = raw(one + f"GET /two HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n", reach(port))
    assert b"GET /one" in answer
    assert b"/two" not in answer
    assert b"x-hop" not in answer


def test_a_host_that_does_not_answer_is_told_apart_from_a_refused_one() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        free = taken.getsockname()[1]
        answer, reached = exchange(f"CONNECT 127.0.0.1:{free} HTTP/1.1\r\n\r\n", reach(free))
    assert answer.startswith(b"HTTP/1.1 502 ")
    assert "cannot be reached" in str(reached[0].refused)


def test_connections_hosts_bytes_and_silence_have_limits(port: int) -> None:
    get = f"GET http://127.0.0.1:{port}/ HTTP/1.1\r\n\r\n"
    assert b"at most 0 connections" in raw(get, reach(port), ProxyLimits(connections=0))
    answer, reached = exchange(get, reach(port), ProxyLimits(hosts=0))
    assert b"at most 0 different hosts" in answer
    assert reached == ()
    assert raw(get, reach(port), ProxyLimits(total_bytes=60)) == b""
    tunnel = f"CONNECT 127.0.0.1:{port} HTTP/1.1\r\n\r\n"
    long = tunnel + "GET / HTTP/1.1\r\n" + "X: y\r\n" * 100 + "\r\n"
    assert b"[" not in raw(long, reach(port), ProxyLimits(total_bytes=650))
    assert raw("GET http", reach(port)) == b""


def test_a_silent_tunnel_ends() -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        number = silent.getsockname()[1]
        answer = raw(f"CONNECT 127.0.0.1:{number} HTTP/1.1\r\n\r\n", reach(number), ProxyLimits(idle_s=0.2))
    assert answer.startswith(b"HTTP/1.1 200 ")


def test_the_end_of_a_run_ends_its_connections() -> None:
    ours, theirs = socket.socketpair()
    with socket.socket() as silent, socket.socket() as listening, theirs:
        for one in (silent, listening):
            one.bind(("127.0.0.1", 0))
            one.listen()
        number = silent.getsockname()[1]
        with Proxy(reach(number), ours):
            socket.send_fds(theirs, [b"x"], [listening.fileno()])
            client = socket.create_connection(listening.getsockname(), timeout=30)
            client.sendall(f"CONNECT 127.0.0.1:{number} HTTP/1.1\r\n\r\n".encode())
            assert b"200" in client.recv(100)
        with client:
            assert client.recv(100) == b""


def test_a_sandbox_that_never_came_to_be_leaves_nothing() -> None:
    ours, theirs = socket.socketpair()
    with Proxy(reach(), ours) as proxy:
        theirs.close()
    assert proxy.reached() == ()
    assert ours.fileno() == -1


def test_a_secret_is_in_a_file_of_the_sandbox_alone_and_masked_in_what_is_said(sandbox: Bubblewrap) -> None:
    secret = Secret(content=b"login canary-secret\n", words=(b"canary-secret",))
    line = f"cat {SECRET_FILE}; stat -c %a {SECRET_FILE}; cat {SECRET_FILE} >&2; env"
    heard: list[bytes] = []
    confined = Confined(argv=("/bin/sh", "-c", line), reach=HostReach(HostRules()), secret=secret)
    assert "canary" not in str(sandbox.command(confined, (3, 4, 5, 6)))
    finished = sandbox.run(confined, on_output=lambda *said: heard.append(repr(said).encode()))
    assert finished.stdout.startswith(b"login ***\n600\n")
    assert finished.stderr == b"login ***\n"
    assert b"canary" not in finished.stdout
    assert heard == []
    assert not Path(SECRET_FILE).exists()
