"""Where a command takes its token from: a file or the environment, so that no process list shows it."""

from __future__ import annotations

import os
from pathlib import Path

from toolgate.errors import UsageError

TOKEN = "TOOLGATE_TOKEN"


def token_of(file: Path | None, *, kind: str) -> str:
    """Return the token in the file, or else in the environment; what is started from here does not inherit it."""
    if file is not None:
        text = _read(file)
    else:
        text = os.environ.pop(TOKEN, "").strip()
    if not text:
        where = f"{file} is empty" if file is not None else f"the variable {TOKEN} is not set"
        raise UsageError(
            f"This needs a token, and {where}. On the server: `toolgate token create NAME --kind {kind} "
            "--project PROJECT`."
        )
    return text


def _read(file: Path) -> str:
    try:
        with file.open(encoding="utf-8") as opened:
            text = opened.read(10_000).strip()
            is_open = bool(os.fstat(opened.fileno()).st_mode & 0o077)
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"The token file {file} cannot be read ({type(error).__name__}).") from None
    if text and is_open:
        raise UsageError(f"Others can read the token file {file}; run `chmod 600 {file}` first.")
    return text
