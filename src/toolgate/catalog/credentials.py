"""The user's own credentials for one https host, asked of their Git outside the sandbox and handed to one command.

The user's configuration and helpers answer, never a repository's, and nobody is prompted. What they say goes into a
file that only that command's sandbox has; it is in no argument, variable or record.
"""

from __future__ import annotations

import base64
import os
import subprocess
from dataclasses import replace
from urllib.parse import quote, unquote, urlsplit

from toolgate.catalog.remotes import CONNECTING
from toolgate.errors import ToolExecutionError
from toolgate.guards.argv import Parsed
from toolgate.ports.confinement import SECRET_FILE, Confined, Secret

ASK_S = 20.0
"""How long a helper may take to answer."""
_TOKEN_LENGTH = 20
_KEPT = ("GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM")


def place_of(parsed: Parsed, urls: tuple[str, ...]) -> str | None:
    """Return the one place, `https://host`, that a command of Git's known by its grammar could need a login for."""
    if parsed.unknown or not CONNECTING.issuperset(parsed.subcommands[:1] or ("",)) or len(urls) != 1:
        return None
    try:
        parts = urlsplit(urls[0])
        host = parts.netloc.rpartition("@")[2]
        is_fit = parts.scheme == "https" and bool(parts.hostname) and parts.password is None and parts.port != 0
    except ValueError:
        return None
    return f"https://{host}" if is_fit and host.isascii() and host.isprintable() else None


def given_to(confined: Confined, executable: str, url: str, place: str) -> Confined:
    """Return a Git command with the user's login for a place, where their Git knows one without asking anybody."""
    found = _filled(executable, url, place)
    name, password = found.get("username"), found.get("password")
    if not name or not password or found.get("protocol") != "https" or f"https://{found.get('host')}" != place:
        return confined
    text = f"https://{quote(name, safe='')}:{quote(password, safe='')}@{place.removeprefix('https://')}\n"
    coded = base64.b64encode(f"{name}:{password}".encode()).decode()
    long_names = [name] if len(name) >= _TOKEN_LENGTH else []  # a token may stand where a name does
    words = tuple(word.encode() for word in (coded, password, quote(password, safe=""), *long_names))
    count = int(confined.environment["GIT_CONFIG_COUNT"])
    helper = {
        "GIT_CONFIG_COUNT": str(count + 1),
        f"GIT_CONFIG_KEY_{count}": f"credential.{place}.helper",
        f"GIT_CONFIG_VALUE_{count}": f"store --file={SECRET_FILE}",
    }
    secret = Secret(content=text.encode(), words=words)
    return replace(confined, environment={**confined.environment, **helper}, tools=(), secret=secret)


def _filled(executable: str, url: str, place: str) -> dict[str, str]:
    parts = urlsplit(url)
    asked = {"protocol": "https", "host": place.removeprefix("https://"), "path": parts.path.lstrip("/")}
    asked |= {"username": unquote(parts.username)} if parts.username else {}
    if any("\n" in value or "\0" in value for value in asked.values()):
        return {}
    own = {name: value for name, value in os.environ.items() if not name.startswith("GIT_") or name in _KEPT}
    quiet = {"GIT_DIR": "/dev/null", "GIT_TERMINAL_PROMPT": "0", "GIT_ASKPASS": "false", "GCM_INTERACTIVE": "never"}
    try:
        done = subprocess.run(
            [executable, "credential", "fill"],
            env=own | quiet,
            cwd="/",
            input="".join(f"{key}={value}\n" for key, value in asked.items()).encode(),
            capture_output=True,
            timeout=ASK_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ToolExecutionError(
            f"Your Git could not be asked for credentials for {place}: {type(error).__name__}. Check its credential "
            "helper, or run this command yourself."
        ) from None
    if done.returncode != 0:  # it knows none
        return {}
    pairs = (line.partition("=") for line in done.stdout.decode(errors="replace").splitlines())
    return {key: value for key, _, value in pairs}
