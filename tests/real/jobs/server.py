"""With `server`: a first policy, a server on it, and its health."""

from __future__ import annotations

import subprocess
import sys
import urllib.request
from pathlib import Path

program = Path(sys.executable).with_name("toolgate")
subprocess.run([program, "init", "shop"], capture_output=True, check=True)
with subprocess.Popen(
    [program, "serve", "--port", "0"], cwd="shop", stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
) as server:
    assert server.stdout is not None
    try:
        line = next((line for line in server.stdout if line.startswith("Serving on ")), None)
        assert line is not None, "the server ended without a word"
        url = line.removeprefix("Serving on ").strip()
        for path in ("healthz", "readyz", ""):
            with urllib.request.urlopen(f"{url}/{path}", timeout=60) as answer:
                assert answer.status == 200, path
    finally:
        server.terminate()
