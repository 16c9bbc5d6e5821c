"""Sealing what must be kept but not read: executable arguments, results and undo data.

The key lives beside the database in a file only its owner may read, or in the environment variable
TOOLGATE_KEY. A key file may hold several keys, one a line: the first seals, all of them open, so a
key is rotated by putting a new one on top. A process that meets a value sealed with a key it does
not have looks into the file again.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import hashlib
import hmac
import os
import stat
from collections.abc import Callable
from pathlib import Path

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from toolgate.errors import StoreError
from toolgate.guards.files import sync_folder
from toolgate.kernel.marks import Marks
from toolgate.kernel.nonces import Nonces

ENVIRONMENT = "TOOLGATE_KEY"
FILE_ENVIRONMENT = "TOOLGATE_KEY_FILE"
KEY_BYTES = 32
ID_BYTES = 4
_NONCE_BYTES = 12
_nonces = Nonces(_NONCE_BYTES)


class Sealer:
    """Seals with the first key, opens with any. Each box is bound to the row it belongs to."""

    def __init__(self, keys: list[bytes], more: Callable[[], list[bytes]] = list) -> None:
        if not keys or any(len(key) != KEY_BYTES for key in keys):
            raise StoreError(f"A sealing key is {KEY_BYTES} bytes, and there must be one.")
        self._ids = [key_id(key) for key in keys]
        self._boxes = {id: AESGCM(key) for id, key in zip(self._ids, keys, strict=True)}
        self._keys = dict(zip(self._ids, keys, strict=True))
        self._head = self._ids[0]
        self._first = self._boxes[self._head]
        self._more = more

    @property
    def current(self) -> str:
        """The id of the key that seals, as text."""
        return self._ids[0].hex()

    @property
    def marks(self) -> Marks:
        """What marks people's decisions, under keys made from these: a rotated one still checks what it marked."""
        return Marks(self.current, self._mark_key)

    def _mark_key(self, id: str) -> bytes | None:
        try:
            head = bytes.fromhex(id)
        except ValueError:
            return None
        if head not in self._boxes:
            self._find(head)
        key = self._keys.get(head)
        return None if key is None else hmac.digest(key, b"toolgate-mark-1", "sha256")

    def knows(self, id: str) -> bool:
        """Whether a key of this id is at hand."""
        return bytes.fromhex(id) in self._boxes

    def seal(self, data: bytes, row: bytes) -> bytes:
        """Return `data` sealed for this row."""
        nonce = _nonces.take()
        return self._head + nonce + self._first.encrypt(nonce, data, row)

    def open(self, box: bytes, row: bytes) -> bytes:
        """Return what was sealed for this row; StoreError where the key is missing or the box was changed."""
        head, nonce, body = box[:ID_BYTES], box[ID_BYTES : ID_BYTES + _NONCE_BYTES], box[ID_BYTES + _NONCE_BYTES :]
        known = self._boxes.get(head) or self._find(head)
        if known is None:
            raise StoreError(f"A sealed value needs key {head.hex()}, which is not here; add it to the key file.")
        try:
            return known.decrypt(nonce, body, row)
        except (InvalidTag, ValueError):  # ValueError: cut so short that no nonce is left
            raise StoreError("A sealed value was changed or belongs to another row; it is not used.") from None

    def _find(self, head: bytes) -> AESGCM | None:
        """A key that was added since: other processes may seal with it already."""
        for key in self._more():
            self._keys.setdefault(key_id(key), key)
            self._boxes.setdefault(key_id(key), AESGCM(key))
        return self._boxes.get(head)


def key_id(key: bytes) -> bytes:
    """A short public name of a key; tells nothing about it."""
    return hashlib.sha256(b"toolgate-key\x00" + key).digest()[:ID_BYTES]


def new_key() -> str:
    """Return a fresh key as text."""
    return base64.b64encode(os.urandom(KEY_BYTES)).decode()


def load(path: Path, *, create: bool) -> Sealer:
    """Return the sealer for a database: keys from the environment, else from the file at `path`.

    With `create`, a missing file is made with a fresh key; otherwise a missing key is an error, since
    a fresh one could not open what is there.
    """
    given = os.environ.get(ENVIRONMENT)
    if given:
        return Sealer(_read_keys(given.replace(",", " "), f"${ENVIRONMENT}"))
    if not path.exists():
        if not create:
            raise StoreError(
                f"The key file {path.name} is missing. Put it back beside the database, or set {ENVIRONMENT}; "
                "without it nothing that was sealed can be opened."
            )
        _create(path)
    return Sealer(_read_file(path), lambda: _read_file(path))


def at_hand(path: Path) -> Sealer | None:
    """The sealer for a database where its keys are here; None where they are kept elsewhere."""
    return load(path, create=False) if os.environ.get(ENVIRONMENT) or path.exists() else None


def shared_at_hand(path: Path | None) -> Sealer | None:
    """The same for a database that many machines share."""
    is_named = path is not None or os.environ.get(ENVIRONMENT) or os.environ.get(FILE_ENVIRONMENT)
    return load_shared(path) if is_named else None


def load_shared(path: Path | None) -> Sealer:
    """Return the sealer for a database that many machines share: no key lies beside it, and none is made by itself.

    Keys come from the environment, from the file at `path`, or from the one the environment names.
    """
    given = os.environ.get(ENVIRONMENT)
    if given:
        return Sealer(_read_keys(given.replace(",", " "), f"${ENVIRONMENT}"))
    named = path or (Path(os.environ[FILE_ENVIRONMENT]) if os.environ.get(FILE_ENVIRONMENT) else None)
    if named is None:
        raise StoreError(
            "A PostgreSQL store needs the key that seals arguments and results, the same on every machine: set "
            f"{ENVIRONMENT} to it, or {FILE_ENVIRONMENT} (or `?key=PATH` in the URL) to a file that holds it. "
            "`toolgate db key FILE` creates one."
        )
    if not named.exists():
        raise StoreError(f"The key file {named} is missing; `toolgate db key {named}` creates a new one.")
    return Sealer(_read_file(named), lambda: _read_file(named))


def make_file(path: Path) -> None:
    """Make a key file with a fresh key; StoreError where there is something already."""
    if path.exists():
        raise StoreError(f"{path} exists already; a key is never overwritten.")
    _create(path)


def _read_file(path: Path) -> list[bytes]:
    try:
        mode = path.stat().st_mode
    except OSError as error:
        raise StoreError(f"The key file {path.name} cannot be read ({error.strerror}).") from error
    if stat.S_IMODE(mode) & 0o077:
        raise StoreError(f"The key file {path.name} can be read by others; run `chmod 600` on it.")
    try:
        text = path.read_text(encoding="ascii")
    except (OSError, UnicodeDecodeError) as error:
        raise StoreError(f"The key file {path.name} cannot be read ({type(error).__name__}).") from error
    return _read_keys(text, path.name)


def _create(path: Path) -> None:
    """Make a key file that is there wholly or not at all; where another process makes one too, the first counts."""
    draft = path.with_name(f"{path.name}.{os.urandom(4).hex()}")
    try:
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            file.write(new_key() + "\n")
            file.flush()
            os.fsync(file.fileno())
        with contextlib.suppress(FileExistsError):
            os.link(draft, path)
        draft.unlink()
        sync_folder(path.parent)
    except OSError as error:
        raise StoreError(f"The key file {path.name} cannot be created ({error.strerror}).") from error


def _read_keys(text: str, where: str) -> list[bytes]:
    if not text.split():
        raise StoreError(f"{where} holds no key; put the right one back.")
    return [_read_key(line, where) for line in text.split()]


def _read_key(text: str, where: str) -> bytes:
    try:
        key = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if len(key) != KEY_BYTES:
        raise StoreError(f"{where} holds something that is not a {KEY_BYTES}-byte key in base64.")
    return key


def check_keys(noted: list[str], keys: Sealer) -> None:
    """A database remembers which keys sealed it; using it without one of them is refused now, not later."""
    for id in noted:
        if not keys.knows(id):
            raise StoreError(
                f"The database was sealed with key {id}, which is not among the keys given. "
                "Nothing was changed; give the right key file."
            )
