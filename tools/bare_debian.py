"""Run `make demo` and `make test` on a bare Debian, as a stranger would: `make test-debian`.

Owns the bare root folders and the table of what happened in them. Needs root and debootstrap. Every run gets a copy
of a root folder with only Python, Git and Make in it, a clean clone of HEAD, and namespaces of its own, so that nothing
stays mounted or running. Of this machine come along: its Debian mirror, its proxies, its own certificates, and the
package index pip was told to use; an ordinary Debian there would have them, too.
"""

from __future__ import annotations

import argparse
import itertools
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
RELEASES = ("bookworm", "trixie")
PACKAGES = "python3,git,make,ca-certificates"
OWN_CERTIFICATES = Path("/usr/local/share/ca-certificates")
PROXIES = ("http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY")
PIP_SETTINGS = ("index-url", "extra-index-url", "proxy", "trusted-host")
COMMANDS = {"demo": "make demo DEMO=--auto", "check": "make check", "test": "make test", "test-real": "make test-real"}
PLAIN = "visitor"

# A plain chroot would do for all but the sandbox: in one, the kernel refuses user namespaces.
ENTER = """
set -e
mount --bind "$1" "$1"
cd "$1"
mount -t proc proc proc
mount --rbind /dev dev
mount --rbind /sys sys
mkdir -p .outside
pivot_root . .outside
umount -l /.outside
shift
exec "$@"
"""


class Run(NamedTuple):
    """One combination to try."""

    release: str
    user: str
    bubblewrap: bool

    @property
    def name(self) -> str:
        return f"{self.release}-{self.user}-{'with' if self.bubblewrap else 'without'}-bubblewrap"


class Outcome(NamedTuple):
    """What a command came to."""

    run: Run
    job: str
    code: int
    seconds: float
    log: Path


def debian_mirror() -> list[str]:
    """Return the mirror this machine's apt uses, as arguments; none where debootstrap has to choose."""
    command = ["apt-get", "indextargets", "--format", "$(REPO_URI)", "Created-By: Packages", "Origin: Debian"]
    found = subprocess.run(command, capture_output=True, text=True, check=False).stdout.split()
    return [uri for uri in found if uri.rstrip("/").endswith("/debian")][:1]


def prepare(release: str, folder: Path) -> Path:
    """Return the bare root folder of a release, made at the first time."""
    target = folder / release
    ready = folder / f"{release}.ready"
    if not ready.exists():
        shutil.rmtree(target, ignore_errors=True)
        print(f"debian: making {target}", flush=True)
        log = folder / f"{release}.log"
        with log.open("w") as output:
            options = ["--variant=minbase", f"--include={PACKAGES}"]
            command = ["debootstrap", *options, release, str(target), *debian_mirror()]
            if subprocess.run(command, stdout=output, stderr=output, check=False).returncode != 0:
                raise SystemExit(f"debian: debootstrap of {release} failed; see {log}")
        ready.touch()
    return target


def pip_settings() -> Iterator[str]:
    """Yield the lines of pip's configuration that say which index to use; those of files stay here."""
    command = [sys.executable, "-m", "pip", "config", "list"]
    listed = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    for name, value in re.findall(r"^(?:global|install|:env:)\.([a-z-]+)='(.*)'$", listed, re.MULTILINE):
        reachable = [word for word in value.split() if not word.startswith(("file:", "/"))]
        if name in PIP_SETTINGS and reachable:
            yield f"{name} = {' '.join(reachable)}"


def apt_settings() -> Iterator[str]:
    """Yield the lines of apt's configuration that say how to reach its servers."""
    dump = subprocess.run(["apt-config", "dump"], capture_output=True, text=True, check=False).stdout
    return (line for line in dump.splitlines() if re.match(r"Acquire::(https?|Retries)(::\S+)? \"..*\";", line))


def settle(root: Path) -> None:
    """Give a copy what an ordinary machine in this network would have."""
    shutil.copy("/etc/resolv.conf", root / "etc/resolv.conf")
    (root / "etc/apt/apt.conf.d/90network").write_text("\n".join(apt_settings()) + "\n")
    (root / "etc/pip.conf").write_text("\n".join(["[global]", *pip_settings()]) + "\n")
    for certificate in OWN_CERTIFICATES.glob("**/*.crt"):
        shutil.copy(certificate, root / "usr/local/share/ca-certificates" / certificate.name)
    inside(root, "root", "update-ca-certificates --fresh >/dev/null")


def command_inside(root: Path, user: str, line: str) -> list[str]:
    """Return the command that runs a shell line in a root folder, as a user, with nothing of our environment."""
    home = "/root" if user == "root" else f"/home/{user}"
    environment = {name: os.environ[name] for name in PROXIES if name in os.environ}
    environment |= {"HOME": home, "USER": user, "LANG": "C.UTF-8", "TERM": os.environ.get("TERM", "dumb")}
    environment["PATH"] = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    namespaces = ["unshare", "--mount", "--propagation", "private", "--pid", "--fork", "--kill-child"]
    become = ["setpriv", f"--reuid={user}", f"--regid={user}", "--init-groups"]
    words = [f"{name}={value}" for name, value in environment.items()]
    return [*namespaces, "sh", "-c", ENTER, "sh", str(root), *become, "env", "-i", *words, "sh", "-c", line]


def inside(root: Path, user: str, line: str) -> None:
    """Run a preparing shell line in a root folder; stop where it fails."""
    if subprocess.run(command_inside(root, user, line), check=False).returncode != 0:
        raise SystemExit(f"debian: `{line}` failed in {root}")


def clone(root: Path, user: str) -> None:
    """Put a clean clone of HEAD into the user's home."""
    target = root / ("root" if user == "root" else f"home/{user}") / "toolgate"
    head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    subprocess.run(["git", "clone", "--quiet", "--no-hardlinks", "--no-checkout", ROOT, target], check=True)
    subprocess.run(["git", "checkout", "--quiet", "--detach", head.strip()], cwd=target, check=True)
    if user != "root":
        inside(root, "root", f"chown -R {user}: /home/{user}/toolgate")


def furnish(root: Path, run: Run) -> None:
    """Bring a copy to where the documentation says that a run begins."""
    settle(root)
    packages = ["bubblewrap"] if run.bubblewrap else []
    if run.user != "root":
        packages.append("python3-venv")  # what a plain user has to ask root for
        inside(root, "root", f"useradd --create-home --shell /bin/bash {run.user}")
    if packages:
        quietly = "DEBIAN_FRONTEND=noninteractive apt-get install -qq --yes --no-install-recommends"
        names = " ".join(packages)
        inside(
            root, "root", f"(apt-get update -qq && {quietly} {names}) >/tmp/apt.log 2>&1 || (cat /tmp/apt.log; false)"
        )
    clone(root, run.user)


def attempt(run: Run, job: str, root: Path, log: Path, limit_s: float) -> Outcome:
    """Run one command and keep what it prints."""
    print(f"debian: {run.name}: {COMMANDS[job]}", flush=True)
    begun = time.monotonic()
    with log.open("w") as output:
        line = f"cd ~/toolgate && {COMMANDS[job]}"
        process = subprocess.Popen(
            command_inside(root, run.user, line), stdin=subprocess.DEVNULL, stdout=output, stderr=output
        )
        try:
            code = process.wait(limit_s)
        except subprocess.TimeoutExpired:
            code = 124
        finally:
            process.kill()
            process.wait()
    return Outcome(run, job, code, time.monotonic() - begun, log)


def go_through(run: Run, options: argparse.Namespace) -> Iterator[Outcome]:
    """Yield the outcome of every job of one combination, in a copy that is gone afterwards."""
    folder: Path = options.folder
    copy = folder / "runs" / run.name
    shutil.rmtree(copy, ignore_errors=True)
    copy.parent.mkdir(exist_ok=True)
    try:
        subprocess.run(["cp", "-a", "--reflink=auto", folder / run.release, copy], check=True)
        furnish(copy, run)
        for job in options.job:
            yield attempt(run, job, copy, folder / "runs" / f"{run.name}-{job}.log", options.limit)
    finally:
        if not options.keep:
            shutil.rmtree(copy)


def table(outcomes: list[Outcome]) -> Iterator[str]:
    """Yield the lines of the result."""
    yield f"{'release':<10}{'user':<9}{'bubblewrap':<12}{'command':<24}{'seconds':>8}{'exit':>6}  output"
    for run, job, code, seconds, log in outcomes:
        sandbox = "with" if run.bubblewrap else "without"
        yield f"{run.release:<10}{run.user:<9}{sandbox:<12}{COMMANDS[job]:<24}{seconds:>8.0f}{code:>6}  {log}"


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Run make targets on a bare Debian; needs root and debootstrap.")
    parser.add_argument("--release", nargs="+", choices=RELEASES, default=list(RELEASES))
    parser.add_argument("--user", nargs="+", choices=("root", PLAIN), default=["root", PLAIN])
    parser.add_argument("--bubblewrap", nargs="+", choices=("with", "without"), default=["with", "without"])
    parser.add_argument(
        "--job", nargs="+", choices=tuple(COMMANDS), default=["demo"], help="in this order, in one copy"
    )
    parser.add_argument("--folder", type=Path, default=Path("/tmp/debian"), help="where the root folders are kept")
    parser.add_argument("--limit", type=float, default=7200, help="seconds one command may take")
    parser.add_argument("--keep", action="store_true", help="keep the copies the commands ran in")
    return parser.parse_args()


def main() -> int:
    options = read_options()
    if os.geteuid() != 0 or shutil.which("debootstrap") is None:
        print("debian: needs root and debootstrap (apt-get install debootstrap).", file=sys.stderr)
        return 2
    options.folder.mkdir(parents=True, exist_ok=True)
    for release in options.release:
        prepare(release, options.folder)
    outcomes: list[Outcome] = []
    for release, user, sandbox in itertools.product(options.release, options.user, options.bubblewrap):
        outcomes.extend(go_through(Run(release, user, sandbox == "with"), options))
    print("\n".join(table(outcomes)))
    return 0 if all(outcome.code == 0 for outcome in outcomes) else 1


if __name__ == "__main__":
    sys.exit(main())
