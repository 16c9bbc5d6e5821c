"""The console's scripts and style sheet: read once, packed once, kept by browsers for as long as they do not change.

Their address holds a hash of all of them, so relative imports between modules stay within one version. Comments and
types, which only people and the type checker read, are left out of what is sent; every line keeps its number.
"""

from __future__ import annotations

import gzip
import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response

from toolgate.interfaces.server.problems import not_found

FOLDER = Path(__file__).parent / "static"
MEDIA_TYPES = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}
FOR_EVER = "public, max-age=31536000, immutable"


_COMMENT = re.compile(rb"/\*\*.*?\*/", re.DOTALL)
_STYLE_COMMENT = re.compile(rb"/\*.*?\*/", re.DOTALL)
_TEXT = re.compile(rb"""("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|`(?:[^`\\]|\\.)*`)""")
_LOOSE = re.compile(rb" ?([=?:,&|<>{}();]+) ?")  # neither + nor -: two of them make another word
_PATTERN = re.compile(rb"""[=(,:!&|?\[] ?/[^/ ]""")
"""Where a regular expression may begin, in which a space counts."""


def lean(script: bytes) -> bytes:
    """Return a script without its comments, indentation and needless spaces.

    No text in a script of ours spans lines or holds `/**`.
    """
    bare = _COMMENT.sub(lambda found: b"\n" * found[0].count(b"\n"), script)
    return b"\n".join(_tight(line.strip()) for line in bare.split(b"\n"))


def _tight(line: bytes) -> bytes:
    if line.startswith(b"//"):
        return b""
    pieces = _TEXT.split(line)
    if line.count(b"`") > 2 or any(map(_PATTERN.search, pieces[::2])):  # texts within texts, or a pattern
        return line
    pieces[::2] = [_LOOSE.sub(rb"\1", piece) for piece in pieces[::2]]
    return b"".join(pieces)


def lean_style(sheet: bytes) -> bytes:
    """Return a style sheet without its comments and indentation."""
    bare = _STYLE_COMMENT.sub(b"", sheet)
    return b"\n".join(line.strip() for line in bare.split(b"\n") if line.strip())


LEAN = {".js": lean, ".css": lean_style}


@dataclass(frozen=True, slots=True)
class Asset:
    """One file, as it is and packed."""

    media_type: str
    plain: bytes
    packed: bytes


@dataclass(frozen=True, slots=True)
class Assets:
    """All files by their path, and the version they make together."""

    files: Mapping[str, Asset]
    version: str

    @classmethod
    def load(cls, folder: Path = FOLDER) -> Assets:
        """Read every file the console is made of."""
        files: dict[str, Asset] = {}
        digest = hashlib.sha256()
        for path in sorted(folder.rglob("*")):
            if path.suffix not in MEDIA_TYPES:
                continue
            name, content = path.relative_to(folder).as_posix(), path.read_bytes()
            content = LEAN[path.suffix](content) if path.suffix in LEAN else content
            digest.update(f"{name}\0{len(content)}\0".encode() + content)
            files[name] = Asset(MEDIA_TYPES[path.suffix], content, gzip.compress(content, 9, mtime=0))
        return cls(files, digest.hexdigest()[:16])

    @property
    def base(self) -> str:
        """Where the files of this version are."""
        return f"/console/{self.version}"

    @property
    def modules(self) -> list[str]:
        """The scripts of the shell, to be fetched before they are asked for."""
        return [
            name for name in self.files if name.endswith(".js") and name not in ("app.js", "login.js", "signed_in.js")
        ]

    async def serve(self, request: Request) -> Response:
        """Answer with a file of this version; of another version there is none."""
        asset = self.files.get(request.path_params["path"])
        if asset is None or request.path_params["version"] != self.version:
            return not_found().response()
        headers = {"Cache-Control": FOR_EVER, "Vary": "Accept-Encoding"}
        if "gzip" in request.headers.get("accept-encoding", ""):
            return Response(asset.packed, 200, {**headers, "Content-Encoding": "gzip"}, asset.media_type)
        return Response(asset.plain, 200, headers, asset.media_type)
