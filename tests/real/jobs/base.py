"""Without extras: a governed call that a person's function approves, kept in a file, and the command line."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import toolgate


@toolgate.tool(risk_level="medium")
def send_mail(to: str) -> str:
    return f"sent to {to}"


with toolgate.open("sqlite:///toolgate.db", tools=[send_mail], approver=lambda asked: True) as gate:
    result = gate.sync.call("send_mail", '{"to": "ann@example.com"}')
    assert (result.status, result.data) == ("COMPLETED", "sent to ann@example.com"), result

program = Path(sys.executable).with_name("toolgate")
helped = subprocess.run([program, "--help"], capture_output=True, text=True, check=True)
assert "serve" in helped.stdout, helped
subprocess.run([program, "audit", "verify", "toolgate.db"], capture_output=True, check=True)
