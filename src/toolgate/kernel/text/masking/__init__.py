"""Hide secrets in any value before it is logged, published, shown or stored in readable form.

This file owns the walk over values, and secrets in command lines. What counts as a secret beside a key is judged in
`masking_keys`, because it was registered in `masking_registered`, by its looks in `masking_shapes`, in URLs in
`masking_urls`.

Under a key that names a secret the whole value becomes `MASK`; booleans, `None` and empty values stay, because
they are flags. Ordinary data comes out equal to what went in, and masking twice changes nothing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, time, timedelta
from decimal import Decimal
from enum import Enum
from threading import Lock
from typing import Any, Final, cast
from uuid import UUID

import orjson

from toolgate.kernel.text.lazy_pattern import lazy_pattern
from toolgate.kernel.text.masking.keys import (
    MASK,
    MAX_KEY,
    Style,
    Verdict,
    is_harmless,
    is_named_pair,
    judge,
    pair_names,
    reads_as_secret,
)
from toolgate.kernel.text.masking.plain import Copying, OddError, is_plain, is_plain_json
from toolgate.kernel.text.masking.registered import Secrets
from toolgate.kernel.text.masking.shapes import find_names, mask_assignments, mask_shapes
from toolgate.kernel.text.masking.urls import mask_schemes, mask_urls

__all__ = ["MASK", "TOO_DEEP", "Masker"]

TOO_DEEP: Final = "<too deep>"
"""Stands for whatever is nested deeper than a reader could follow, and for a value that contains itself."""

_MAX_DEPTH: Final = 64
_MAX_PASSES: Final = 6
_SHORT: Final = 4  # a shorter registered secret hides only a value equal to it: in text it would hit words
_QUICK: Final = 15  # letters and digits alone, fewer than this, match no rule
_MAX_KEYS: Final = 4096
_FEW: Final = 32  # keys of a dict that are remembered together
_SCALARS: Final = (date, time, timedelta, Decimal, UUID, Enum)
_CONSTANTS: Final[frozenset[type]] = frozenset({int, float, bool, type(None)})
"""Never masked by themselves, unless a registered secret could be a number."""


REPEATED = 512
"""How many texts `Masker.repeated` remembers."""


class Masker:
    """Masks values; safe to share between threads.

    Registered secrets are hidden wherever they appear, in keys and values, also inside base64, percent-encoded,
    JSON-escaped or hexadecimal text. Ones shorter than four characters hide only a value equal to them; empty
    ones are ignored.
    """

    __slots__ = ("_clean", "_constants", "_keys", "_lock", "_quick", "_registered", "_repeated", "_short")

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._lock = Lock()
        self._registered = Secrets()
        self._short: frozenset[str] = frozenset()
        self._quick = _QUICK
        self._keys: dict[str, Verdict] = {}
        self._clean: set[tuple[object, ...]] = set()
        self._repeated: dict[str, str] = {}
        self._constants: frozenset[type] = _CONSTANTS
        for secret in secrets:
            self.add(secret)

    def add(self, secret: str) -> None:
        """Hide this value wherever it appears, from the next call on."""
        with self._lock:
            if 0 < len(secret) < _SHORT:
                self._short |= {secret}
            elif secret:
                self._registered.add(secret)
            if secret:
                self._quick = min(self._quick, len(secret))
                self._constants = frozenset()
            # Last, and in this order: whoever sees the new dict or set also sees the new secret.
            self._keys = {}
            self._clean = set()
            self._repeated = {}

    def text(self, text: str) -> str:
        """Return free text, such as the text of an exception, with its secrets masked."""
        return self._text(text, 0)

    def repeated(self, text: str) -> str:
        """Do what `text` does for texts that come again and again, such as a policy's reasons: remembers some."""
        known = self._repeated
        masked = known.get(text)
        if masked is None:
            masked = self._text(text, 0)
            if len(known) < REPEATED:
                known[text] = masked
        return masked

    def __call__(self, value: object) -> object:
        """Return a masked copy that shares no dict or list with the value."""
        if type(value) is not dict:
            return self._any(value, 0, {}) if type(value) is not list else self._look(value)
        if tuple(value) not in self._clean:
            return self._first(value)
        return value.copy() if self._is_trivial(value) else self._look(value)

    def _is_trivial(self, value: dict[Any, Any]) -> bool:
        """Whether these are values that match no rule, under keys that are known to name no secret."""
        quick, constants = self._quick, self._constants
        for item in value.values():
            kind = type(item)
            if kind is str:
                if len(item) >= quick or not item.isalnum():
                    return False
            elif kind not in constants:
                return False
        return True

    def of(self, value: object, encoded: bytes) -> Any:
        """Do what calling it does with JSON whose bytes are at hand: ordinary data is cleared by those."""
        clean = self._clean  # before its secrets are looked at, see `add`
        if type(value) is dict and (keys := tuple(value)) in clean and self._is_trivial(value):
            return value.copy()
        if not self._constants or not is_plain_json(encoded):
            return self(value)
        if type(value) is dict and len(keys) <= _FEW and len(clean) < _MAX_KEYS:
            clean.add(keys)  # a key without a mark names no secret
        return orjson.loads(orjson.dumps(value))  # in the order of the value, which its bytes may not have

    def _look(self, value: dict[Any, Any] | list[Any]) -> object:
        """Clear a value in one look, or else look at every part of it closely."""
        if self._constants:  # nothing is registered: numbers and short texts need no look
            copying = Copying(self._keys)
            try:
                plain = copying.copy(value)
            except OddError:
                return self._any(value, 0, {})
            if not copying.texts or is_plain("\n".join(copying.texts)):
                return plain
        return self._any(value, 0, {})

    def _first(self, value: dict[Any, Any]) -> object:
        """Mask a dict whose keys were not met together before; remember them if none of them matters."""
        clean, keys = self._clean, self._keys  # in this order, see `add`
        masked = self._mapping(value, 1, {id(value): TOO_DEEP})
        if len(value) <= _FEW and all(keys.get(key) is Verdict.CLEAN for key in value):
            if len(clean) >= _MAX_KEYS:
                clean.clear()
            clean.add(tuple(value))
        return masked

    def _any(self, value: object, depth: int, seen: dict[int, object]) -> object:
        kind = type(value)
        if kind is str:
            return self._text(cast(str, value), depth)
        if kind is dict or kind is list:
            return self._once(value, depth, seen)
        if value is None or kind is bool:
            return value
        if kind is int or kind is float:
            return self._number(value)
        return self._rare(value, depth, seen)

    def _rare(self, value: object, depth: int, seen: dict[int, object]) -> object:
        if isinstance(value, (Mapping, list, tuple, set, frozenset)):
            return self._once(value, depth, seen)
        if isinstance(value, str):
            return self._text(str.__str__(value), depth)
        if isinstance(value, (bytes, bytearray)):
            text = bytes(value).decode("utf-8", "backslashreplace")
            masked = self._text(text, depth)
            return bytes(value) if masked == text else masked.encode("utf-8", "surrogatepass")
        text = _describe(value)
        masked = self._text(text, depth)
        return value if masked == text and isinstance(value, _SCALARS) else masked

    def _number(self, value: object) -> object:
        if not self._registered and not self._short:
            return value
        text = _describe(value)
        return value if self._text(text, 0) == text else MASK

    def _once(self, value: object, depth: int, seen: dict[int, object]) -> object:
        """Mask a container once, however often it is met, so that cycles and shared parts stay bounded."""
        if depth >= _MAX_DEPTH:
            return TOO_DEEP
        identity = id(value)
        if identity in seen:
            return seen[identity]
        seen[identity] = TOO_DEEP
        masked: object
        if isinstance(value, Mapping):
            masked = self._mapping(value, depth + 1, seen)
        elif isinstance(value, (set, frozenset)):
            masked = self._set(value, depth + 1, seen)
        else:
            masked = self._sequence(cast(Sequence[object], value), depth + 1, seen)
        seen[identity] = masked
        return masked

    def _mapping(self, mapping: Mapping[Any, Any], depth: int, seen: dict[int, object]) -> dict[object, object]:
        keys, quick, constants = self._keys, self._quick, self._constants
        masked: dict[object, object] = {}
        for key, item in mapping.items():
            verdict = keys.get(key)
            if verdict is None:
                key, verdict = self._new_key(key, masked)
            kind = type(item)
            if verdict:
                item = self._beside_key(verdict, item, mapping, depth, seen)
            elif kind is str:
                if len(item) >= quick or not item.isalnum():
                    item = self._text(item, depth)
            elif kind is list and key in _LISTINGS:
                item = self._sequence(item, depth + 1, seen, pairs=False)
            elif kind not in constants:
                item = self._any(item, depth, seen)
            masked[key] = item
        return masked

    def _new_key(self, key: object, taken: dict[object, object]) -> tuple[object, Verdict]:
        """Judge and mask a key met for the first time; remember it when it may be shown as it is."""
        keys = self._keys
        if not isinstance(key, str):
            if key is None or isinstance(key, (int, float)):
                return self._number(key), Verdict.CLEAN
            key = _describe(key)
        masked = name = self._text(str.__str__(key), _MAX_DEPTH)
        verdict = max(judge(key), judge(name))
        if masked == key:
            if len(key) <= MAX_KEY:
                if len(keys) >= _MAX_KEYS:
                    keys.clear()
                keys[key] = verdict
            return key, verdict
        count = 1
        while name in taken:
            count += 1
            name = f"{masked}{count}"
        return name, verdict

    def _beside_key(
        self,
        verdict: Verdict,
        item: object,
        mapping: Mapping[object, object],
        depth: int,
        seen: dict[int, object],
    ) -> object:
        if verdict is Verdict.VALUE:
            verdict = max(judge(name) for name in (*pair_names(mapping), None))
        if verdict < Verdict.WEAK or is_harmless(verdict, item):
            return self._any(item, depth, seen)
        return MASK

    def _set(self, items: Iterable[object], depth: int, seen: dict[int, object]) -> object:
        masked = [self._any(item, depth, seen) for item in items]
        try:
            return frozenset(masked) if isinstance(items, frozenset) else set(masked)
        except TypeError:
            return masked

    def _sequence(
        self, items: Sequence[object], depth: int, seen: dict[int, object], pairs: bool = True
    ) -> list[object] | tuple[object, ...]:
        masked = [self._any(item, depth, seen) for item in items]
        if len(items) > 1 and any(type(item) is str for item in items):
            if pairs and len(items) == 2 and is_named_pair(*items):
                masked[1] = MASK
            for index, value in _mask_argv(items).items():
                masked[index] = value
        return tuple(masked) if isinstance(items, tuple) else masked

    def _text(self, text: str, depth: int) -> str:
        if len(text) < self._quick and text.isalnum():
            return text
        masked = self._pass(text, depth)
        if masked is text:
            return text
        for _ in range(_MAX_PASSES):
            again = self._pass(masked, depth)
            if again == masked:
                return masked
            masked = again
        return MASK

    def _pass(self, text: str, depth: int) -> str:
        """Apply every rule once; the same object comes back when none applied."""
        if text in self._short:
            return MASK
        masked = self._registered.ready().hide(text)
        names = find_names(masked)
        document = self._document(masked, depth) if names or '"-' in masked else None
        if document is not None:
            masked = document
        elif names:
            masked = mask_assignments(_mask_commands(mask_schemes(mask_urls(mask_shapes(masked))), True), names)
        elif len(masked) > _QUICK:
            masked = _mask_commands(mask_urls(mask_shapes(masked)), False)
        else:
            masked = mask_urls(masked)
        return text if masked == text else masked

    def _document(self, text: str, depth: int) -> str | None:
        """Mask a text that is one JSON document by its structure; `None` when it is not one."""
        ends = text.strip()[:1] + text.rstrip()[-1:]
        if ends not in _JSON_ENDS or depth >= _MAX_DEPTH:
            return None
        try:
            document = json.loads(text, object_pairs_hook=_distinct)
            masked = self._any(document, depth + 1, {})
            before, after = json.dumps(document), json.dumps(masked)
        except (ValueError, RecursionError):
            return None
        if before == after:
            return text
        compact = (",", ":") if ": " not in text and ", " not in text else None
        indent = 2 if "\n" in text.strip() else None
        return json.dumps(masked, ensure_ascii=text.isascii(), separators=compact, indent=indent)


_LISTINGS: Final = frozenset("required fields columns scopes tags keywords names keys exclude include hidden".split())
_JSON_ENDS: Final = frozenset({"{}", "[]", '""'})


def _distinct(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """Build a JSON object; a repeated key would hide its first value from the rules, so it is refused."""
    built = dict(pairs)
    if len(built) != len(pairs):
        raise ValueError("repeated key")
    return built


def _describe(value: object) -> str:
    """Return the text of an object that is not data; an object that cannot be shown is named by its type."""
    try:
        if isinstance(value, BaseException):
            return f"{type(value).__name__}: {value}"
        return str(value)
    except Exception:  # noqa: BLE001 - foreign code runs here, and masking must never fail
        return f"<{type(value).__name__}>"


_VALUE: Final = (
    r"(?P<quote>[\"']?)(?P<value>(?:(?<=\")[^\"\n]++|(?<=')[^'\n]++"
    r"|[^\s\"'\-|<](?:[^\s\"'|]++|[\"'|](?=[^\s\"'|,)\]}]))*))"
)
_NEAR: Final = r"[ \t][^\n|;&]{0,80}?"
_FLAG: Final = lazy_pattern(r"-(?<![\w\-]-)-?(?P<name>[A-Za-z][\w\-]{1,48}+)(?:[ \t]+(?:\\\n\s*+)?)" + _VALUE)
_ECHO: Final = r"\becho[ \t]+(?:-n[ \t]+)?(?=[^|\n]{1,200}\|[^|\n]{0,120}(?:--password-stdin|sudo -S|--with-token))"
_IDENTIFIED: Final = r"\b(?i:identified\s{1,8}(?:with\s{1,8}\S{1,40}\s{1,8})?by)\s{1,8}(?i:password\s{1,8})?(?=[\"'])"
_NOUNS: Final = frozenset("flag flags option options argument arguments parameter switch value instead which".split())
_COMMANDS: Final = {
    trigger: tuple((command, lazy_pattern(pattern + _VALUE)) for command, pattern in rows)
    for trigger, rows in {
        " -p": (
            ("mysql", rf"\bmysql\w{{0,8}}{_NEAR}(?<=\s)-p(?=[^\s\-])"),
            ("mariadb", rf"\bmariadb[\w\-]{{0,8}}{_NEAR}(?<=\s)-p(?=[^\s\-])"),
            ("7z", rf"\b7za?{_NEAR}(?<=\s)-p(?=[^\s\-])"),
            ("sshpass", r"\bsshpass[ \t]+-p[ \t]*"),
            ("login", rf"\blogin{_NEAR}(?<=\s)-p(?:[ \t]+|=)"),
            ("mongo", rf"\bmongo\w{{0,8}}{_NEAR}(?<=\s)-p[ \t]+"),
            ("cqlsh", rf"\bcqlsh{_NEAR}(?<=\s)-p[ \t]+"),
            ("openssl", r"-pass(?:in|out)?[ \t]+pass:"),
            ("--password-stdin", _ECHO),
        ),
        " -P ": (
            ("sqlcmd", rf"\bsqlcmd{_NEAR}(?<=\s)-P[ \t]+"),
            ("zip", rf"\b(?:un)?zip{_NEAR}(?<=\s)-P[ \t]+"),
            ("mosquitto_", rf"\bmosquitto_\w{{3}}{_NEAR}(?<=\s)-P[ \t]+"),
        ),
        " -a ": (("redis-cli", rf"\bredis-cli{_NEAR}(?<=\s)-a[ \t]+"),),
        " -w ": (("ldap", rf"\bldap\w{{3,10}}{_NEAR}(?<=\s)-w[ \t]+"),),
        " -b": (("curl", rf"\bcurl{_NEAR}(?<=\s)-b[ \t]*(?=[\"']?[\w\-]+=)"),),
        " -S": (("sudo", _ECHO),),
        "pass": (
            ("requirepass", r"\brequirepass[ \t]+"),
            ("login", r"\blogin[ \t\n]{1,8}\S{1,64}[ \t\n]{1,8}password[ \t\n]{1,8}"),
            ("--password-stdin", _ECHO),
        ),
        "dentified ": (("by", _IDENTIFIED),),
        "DENTIFIED ": (("BY", _IDENTIFIED),),
    }.items()
}
_SETTERS: Final = tuple(
    (setter, lazy_pattern(setter + where + r"[ \t]*(?P<name>[A-Za-z_][\w.\-]{2,64}+)[ \t]+" + _VALUE))
    for setter, where in (
        ("ENV ", ""),
        ("setx ", ""),
        (" set ", r"(?:(?<=config set )|(?<=configure set )|(?<=secret set )|(?<=secrets set ))"),
    )
)
_USER: Final = lazy_pattern(
    r"-(?<![\w\-]-)(?:u|-user|U|-proxy-user|-auth)(?:[ \t]*|=)[\"']?"
    r"(?P<user>[\w.@+\-\\]{1,64})(?P<colon>[:%])(?P<value>[^\s\"']+)"
)
_CONTAINERS: Final = lazy_pattern(r"\b(?:docker|podman|kubectl|nerdctl|chown|install|rsync)\b")

_SHORT_FLAGS: Final = {
    "-p": frozenset({"sshpass", "login", "mongo", "mongosh", "mongodump", "mongorestore", "cqlsh"}),
    "-a": frozenset({"redis-cli"}),
    "-w": frozenset({"ldapsearch", "ldapadd", "ldapmodify", "ldapwhoami", "ldapdelete"}),
    "-P": frozenset({"sqlcmd", "bcp", "zip", "unzip", "mosquitto_pub", "mosquitto_sub"}),
    "-b": frozenset({"curl"}),
}
_WITH_USER: Final = ("curl", "http", "https", "smbclient")
_IS_FLAG: Final = lazy_pattern(r"--?[A-Za-z][\w\-]*(?:=.*)?|-|--")
_ATTACHED: Final = frozenset({"mysql", "mysqldump", "mysqladmin", "mariadb", "mariadb-dump", "sshpass", "7z", "7za"})


def _mask_commands(text: str, named: bool) -> str:
    """Replace passwords given to well-known commands and after flags; `named`: some word may name a secret."""
    flagged = " -" in text
    for trigger, patterns in _COMMANDS.items():
        if (flagged if trigger[0] == " " else named) and trigger in text:
            for command, pattern in patterns:
                if command in text:
                    text = pattern.sub(_mask_value, text)
    if "-" in text:
        text = _USER.sub(_mask_user, _FLAG.sub(_mask_named, text))
    for setter, spaced in _SETTERS:
        if setter in text:
            text = spaced.sub(_mask_named, text)
    return text


def _replace(match: re.Match[str]) -> str:
    whole, begin = match.group(), match.start("value") - match.start()
    return f"{whole[:begin]}{MASK}{whole[begin + len(match['value']) :]}"


def _mask_value(match: re.Match[str]) -> str:
    return _replace(match) if reads_as_secret(match["value"], "", Verdict.SECRET, Style.EQUALS) else match.group()


def _mask_named(match: re.Match[str]) -> str:
    verdict, value = judge(match["name"]), match["value"]
    style = Style.QUOTED if match["quote"] else Style.EQUALS
    described = value.lower() in _NOUNS or (value.isupper() and value.isalpha()) or value.startswith("id=")
    if verdict < Verdict.WEAK or described:
        return match.group()
    return _replace(match) if reads_as_secret(value, "", verdict, style) else match.group()


def _mask_user(match: re.Match[str]) -> str:
    line_start = match.string.rfind("\n", max(0, match.start() - 200), match.start()) + 1
    line = match.string[max(line_start, match.start() - 200) : match.start()]
    if match["value"] == match["user"] or _CONTAINERS.search(line):
        return match.group()
    return _replace(match) if reads_as_secret(match["value"], "", Verdict.SECRET, Style.ENV) else match.group()


def _mask_argv(items: Sequence[object]) -> dict[int, str]:
    """Return the masked form of each argument that is a secret because of the arguments before it."""
    masked: dict[int, str] = {}
    commands: set[str] = set()
    for index, item in enumerate(items):
        if type(item) is not str:
            continue
        if not item.startswith("-"):
            commands.add(item.rsplit("/", 1)[-1])
            continue
        if item.startswith("-p") and len(item) > 2 and not commands.isdisjoint(_ATTACHED):
            masked[index] = f"-p{MASK}"
        following = items[index + 1] if index + 1 < len(items) else None
        if type(following) is str:
            value = _argument(item, following, commands)
            if value != following:
                masked[index + 1] = value
    return masked


def _argument(flag: str, value: str, commands: set[str]) -> str:
    if flag in ("-u", "--user", "-U", "--proxy-user") and not commands.isdisjoint(_WITH_USER):
        user, mark, secret = value.partition("%" if "smbclient" in commands else ":")
        return f"{user}{mark}{MASK}" if secret else value
    named = judge(flag.lstrip("-")) if len(flag) > 2 and "=" not in flag else Verdict.CLEAN
    if named < Verdict.WEAK and commands.isdisjoint(_SHORT_FLAGS.get(flag, ())):
        return value
    if _IS_FLAG.fullmatch(value) or not reads_as_secret(value, "", max(named, Verdict.TOKEN), Style.EQUALS):
        return value
    return MASK
