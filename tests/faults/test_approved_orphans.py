"""A call that was approved while nobody could run it, or whose process died before running it, runs once and later."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import toolgate
from toolgate import Gate
from toolgate.kernel.call import Status
from toolgate.ports.store import CallQuery
from toolgate.testing.patience import until_sync

PROGRAM = """
import os, sys, threading
import toolgate
from toolgate.pipeline import Pipeline

URL, SENT = sys.argv[1], sys.argv[2]

@toolgate.tool(risk_level="medium", effects="irreversible")
def send(to: str) -> str:
    with open(SENT, "a") as file:
        file.write(f"{os.getpid()}\\n")
    return "sent"

def open_gate(**options):
    return toolgate.open(URL, tools=[send], **options)

def stay():
    print("open", flush=True)
    sys.stdin.readline()
"""

ASK = 'with open_gate() as gate: print(gate.sync.call("send", {"to": "bob"}, call_id="c1", wait=False).status)'
APPROVE = """
with toolgate.open(URL) as gate:
    [asked] = gate.sync.pending()
    print(gate.sync.decide(asked.id, "approve", by="ann").status)
"""
STAY = "with open_gate(): stay()"
DIE_ON_YES = """
import signal
Pipeline.resume = lambda self, call: os.kill(os.getpid(), signal.SIGKILL)
gate = open_gate()
gate.sync.call("send", {"to": "bob"}, call_id="c1", wait=False)
stay()
threading.Event().wait()
"""
NEVER_CLAIM = """
async def stall(self, call):
    import asyncio
    print("heard", flush=True)
    await asyncio.sleep(600)
Pipeline.resume = stall
gate = open_gate()
gate.sync.call("send", {"to": "bob"}, call_id="c1", wait=False)
stay()
os._exit(0)
"""


PREPARED = """
from toolgate.kernel.tool import Prepared

@toolgate.tool(name="send", prepare=lambda given: look(), effects="irreversible", risk_level="low")
def write(to: str) -> str:
    return send.function(to)

def open_gate():
    return toolgate.open(URL, tools=[write])
"""
PREPARE_FOREVER = (
    PREPARED
    + """
def look():
    stay()
with open_gate() as gate: gate.sync.call("send", {"to": "bob"}, call_id="c1")
"""
)
PREPARE_AND_STAY = (
    PREPARED
    + """
def look():
    return Prepared(preview="seen")
with open_gate(): stay()
"""
)


class Site:
    """One database, the programs on it, and what their tool did."""

    def __init__(self, url: str, folder: Path) -> None:
        self.url = url
        self.sent = folder / "sent"

    def _command(self, program: str) -> list[str]:
        return [sys.executable, "-W", "error", "-c", PROGRAM + textwrap.dedent(program), self.url, str(self.sent)]

    def run(self, program: str) -> str:
        done = subprocess.run(self._command(program), capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    @contextmanager
    def running(self, program: str) -> Iterator[subprocess.Popen[str]]:
        command = self._command(program)
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
            try:
                assert _line(process) == "open"
                yield process
            finally:
                process.kill()

    def ran_by(self) -> list[int]:
        return [int(pid) for pid in self.sent.read_text().split()] if self.sent.exists() else []

    def gate(self) -> Gate:
        return toolgate.open(self.url)

    def ends(self, status: Status = Status.COMPLETED) -> None:
        """Wait until the call has ended so: a server that was killed counts as dead after nine seconds."""
        with self.gate() as gate:
            until_sync(lambda: gate.sync.get("c1").status.is_final, within_s=60)
            assert gate.sync.get("c1").status is status


def _line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


pytestmark = pytest.mark.timeout(300)  # every process begins by importing everything


@pytest.fixture
def on_file(database: Path, tmp_path: Path) -> Site:
    return Site(f"sqlite:///{database}", tmp_path)


@pytest.fixture(params=["sqlite", "postgresql"])
def site(request: pytest.FixtureRequest, tmp_path: Path) -> Site:
    if request.param == "sqlite":
        return Site(f"sqlite:///{request.getfixturevalue('database')}", tmp_path)
    return Site(request.getfixturevalue("postgres_url"), tmp_path)


def test_what_was_approved_while_nobody_had_the_tool_runs_in_the_next_process_that_has_it(site: Site) -> None:
    assert site.run(ASK) == "AWAITING_APPROVAL"
    assert site.run(APPROVE) == "APPROVED"
    with site.running(STAY) as holder:
        site.ends()
        assert site.ran_by() == [holder.pid]


def test_two_processes_that_open_at_once_run_it_once(site: Site) -> None:
    site.run(ASK)
    site.run(APPROVE)
    with site.running(STAY) as one, site.running(STAY) as other:
        site.ends()
        for holder in (one, other):
            assert holder.stdin is not None
            holder.stdin.write("\n")
            holder.stdin.flush()
            holder.wait(60)
    assert len(site.ran_by()) == 1
    assert site.ran_by()[0] in (one.pid, other.pid)


def test_a_process_killed_between_the_yes_and_the_claim_leaves_the_call_to_the_next(site: Site) -> None:
    with site.running(DIE_ON_YES) as dying:
        site.run(APPROVE)
        assert dying.wait(60) == -9
    with site.running(STAY) as holder:
        site.ends()
        assert site.ran_by() == [holder.pid]


def test_a_process_killed_while_it_prepares_a_call_leaves_it_to_the_next(on_file: Site) -> None:
    with on_file.running(PREPARE_FOREVER) as dying, on_file.gate() as gate:
        until_sync(lambda: [call.status for call in gate.sync.calls.list(CallQuery())] == [Status.PENDING], within_s=60)
        gate.sync.recover()
        assert gate.sync.get("c1").status is Status.PENDING
        dying.kill()
        dying.wait(60)
    with on_file.running(PREPARE_AND_STAY) as holder:
        on_file.ends()
        assert on_file.ran_by() == [holder.pid]


def test_an_approved_call_of_a_living_process_is_left_to_it(site: Site) -> None:
    with site.running(NEVER_CLAIM) as owner:
        site.run(APPROVE)
        assert _line(owner) == "heard"
        assert (
            site.run('with open_gate() as gate: gate.sync.recover(); print(gate.sync.get("c1").status)') == "APPROVED"
        )
        assert site.ran_by() == []
        owner.kill()
        owner.wait(60)
        with site.running(STAY) as holder:
            site.ends()
            assert site.ran_by() == [holder.pid]


@pytest.mark.parametrize(
    ("meanwhile", "options"),
    [
        ("with toolgate.open(URL) as gate: gate.sync.set_mode('LOCKDOWN', by='ann', reason='drill')", ""),
        ("open(SENT + '.yaml', 'w').write('version: 1\\ntools: {send: {decision: deny}}')", "policy=SENT + '.yaml'"),
    ],
    ids=["mode", "policy"],
)
def test_it_is_judged_again_before_it_runs(on_file: Site, meanwhile: str, options: str) -> None:
    on_file.run(ASK)
    on_file.run(APPROVE)
    on_file.run(meanwhile)
    with on_file.running(f"with open_gate({options}): stay()"):
        on_file.ends(Status.DENIED)
    assert on_file.ran_by() == []


def test_a_definition_changed_since_the_yes_is_asked_about_again(on_file: Site) -> None:
    on_file.run(ASK)
    on_file.run(APPROVE)
    changed = """
    @toolgate.tool(name="send", risk_level="medium", effects="irreversible")
    def other(to: str, loud: bool = False) -> str: ...
    with toolgate.open(URL, tools=[other]): stay()
    """
    with on_file.running(changed), on_file.gate() as gate:
        until_sync(lambda: gate.sync.get("c1").status is Status.AWAITING_APPROVAL, within_s=60)
    assert on_file.ran_by() == []


def test_a_yes_does_not_count_where_the_approval_itself_does_not_say_so(on_file: Site) -> None:
    on_file.run(ASK)
    forged = """
    from toolgate.kernel.record import evolve
    from toolgate.pipeline import steps
    real = steps.decide
    def forge(call, approval, **how):
        change = real(call, approval, **how)
        [closed] = change.approvals
        return evolve(change, approvals=(evolve(closed, decided_at=closed.expires_at),))
    steps.decide = forge
    """
    on_file.run(textwrap.dedent(forged) + textwrap.dedent(APPROVE))
    with on_file.running(STAY):
        on_file.ends(Status.DENIED)
    assert on_file.ran_by() == []
