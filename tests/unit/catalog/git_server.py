"""Serve bare repositories over https, as a forge does: Git's `http-backend` behind a certificate of a CA of its own."""

from __future__ import annotations

import base64
import http.server
import os
import ssl
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

BACKEND = os.path.join(
    subprocess.run(["git", "--exec-path"], check=True, capture_output=True, text=True).stdout.strip(),
    "git-http-backend",
)
FORWARDED = {"Content-Type": "CONTENT_TYPE", "Content-Length": "CONTENT_LENGTH", "Git-Protocol": "HTTP_GIT_PROTOCOL",
             "Content-Encoding": "HTTP_CONTENT_ENCODING"}  # fmt: skip


def certificates(folder: Path) -> tuple[Path, Path, Path]:
    """Return the files of a CA's certificate, and of a server's certificate and key for 127.0.0.1."""
    now, day = datetime.now(UTC), timedelta(days=1)
    keys = [ec.generate_private_key(ec.SECP256R1()) for _ in range(2)]
    names = [x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)]) for name in ("test CA", "127.0.0.1")]
    constraints = [x509.BasicConstraints(ca=True, path_length=0), x509.BasicConstraints(ca=False, path_length=None)]
    made = []
    for key, name, constraint in zip(keys, names, constraints, strict=True):
        serial = x509.random_serial_number()
        builder = x509.CertificateBuilder(names[0], name, key.public_key(), serial, now - day, now + day)
        builder = builder.add_extension(constraint, critical=True)
        alternative = x509.SubjectAlternativeName([x509.IPAddress(IPv4Address("127.0.0.1"))])
        made.append(builder.add_extension(alternative, critical=False).sign(keys[0], SHA256()))
    files = (folder / "ca.pem", folder / "server.pem", folder / "server.key")
    for file, one in zip(files, made, strict=False):
        file.write_bytes(one.public_bytes(Encoding.PEM))
    files[2].write_bytes(keys[1].private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    return files


@contextmanager
def serving(root: Path, certificate: Path, key: Path, *, login: str | None = None) -> Iterator[int]:
    """Serve what lies beneath a folder and yield the port. login: `user:password`, without which nothing is served."""

    class Backend(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            if login is not None and self.headers.get("Authorization") != f"Basic {_coded(login)}":
                self.answer(401, [("WWW-Authenticate", 'Basic realm="test"')], b"")
                return
            path, _, query = self.path.partition("?")
            given = {
                "GIT_PROJECT_ROOT": str(root),
                "GIT_HTTP_EXPORT_ALL": "1",
                "PATH_INFO": path,
                "QUERY_STRING": query,
            }
            given |= {"REQUEST_METHOD": self.command, "REMOTE_USER": "ada", "PATH": os.defpath}
            given |= {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "safe.directory", "GIT_CONFIG_VALUE_0": "*"}
            given |= {variable: self.headers[name] for name, variable in FORWARDED.items() if name in self.headers}
            done = subprocess.run([BACKEND], env=given, input=body, capture_output=True, check=True)
            head, _, content = done.stdout.partition(b"\r\n\r\n")
            headers = [tuple(line.split(": ", 1)) for line in head.decode().split("\r\n")]
            status = next((int(value.split()[0]) for name, value in headers if name == "Status"), 200)
            self.answer(status, [(name, value) for name, value in headers if name != "Status"], content)

        do_POST = do_GET

        def answer(self, status: int, headers: list[tuple[str, str]], content: bytes) -> None:
            self.send_response(status)
            for name, value in (*headers, ("Content-Length", str(len(content)))):
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Backend) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_address[1]
        server.shutdown()


def _coded(login: str) -> str:
    return base64.b64encode(login.encode()).decode()
