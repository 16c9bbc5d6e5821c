"""A walk through one governed call: an agent asks, a person answers, the effect is undone.

On a terminal you are asked yourself; without one it answers for you.
"""

from __future__ import annotations

import asyncio
import shutil
import sys
import tempfile
from pathlib import Path

import toolgate
from toolgate import Approval, CallbackChannel, Prepared, UndoMetadata, verify

WORKSPACE = Path(tempfile.mkdtemp(prefix="toolgate-walk-"))


def say(text: str = "") -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


@toolgate.tool(effects="read")
async def read_note(name: str) -> str:
    """Read a note of the workspace.

    Args:
        name: file name of the note
    """
    return (WORKSPACE / name).read_text()


def preview_replacement(given: toolgate.ToolInput) -> Prepared:
    """Find out what would change, without changing it."""
    note = WORKSPACE / given.payload["name"]
    before = note.read_text()
    return Prepared(
        preview={"before": before, "after": before.replace(given.payload["old"], given.payload["new"])},
        preconditions={"content": before},
        undo_data={"name": given.payload["name"], "content": before},
    )


def restore(undo: UndoMetadata) -> None:
    (WORKSPACE / undo.undo_data["name"]).write_text(undo.undo_data["content"])


@toolgate.tool(
    effects="reversible",
    risk_level="medium",
    undoable=True,
    prepare=preview_replacement,
    undo_handler=restore,
    approval_message="The agent wants to change a note.",
)
def replace_in_note(name: str, old: str, new: str) -> dict[str, int]:
    """Replace text in a note."""
    note = WORKSPACE / name
    before = note.read_text()
    note.write_text(before.replace(old, new))
    return {"replacements": before.count(old)}


def ask_person(approval: Approval) -> bool:
    """Show the question and take the answer."""
    say(f"\n  [approval] {approval.message}")
    say(f"    tool       {approval.tool_name}   risk {approval.risk}   level {approval.level}")
    say(f"    arguments  {approval.arguments}")
    say(f"    before     {approval.preview['before']!r}")
    say(f"    after      {approval.preview['after']!r}")
    say(f"    digest     {approval.digest[:16]}...   expires {approval.expires_at:%H:%M:%S} UTC")
    if not sys.stdin.isatty():
        say("    approve? [y/n] y   (no terminal: answered for you)")
        return True
    return input("    approve? [y/n] ").strip().lower().startswith("y")


async def main() -> int:
    (WORKSPACE / "plan.txt").write_text("ship on Friday")
    person = CallbackChannel(ask_person, by="you")
    async with toolgate.open("memory://", tools=[read_note, replace_in_note], approver=person) as gate:
        context = toolgate.Context(principal="agent:demo", user="you", run_id="demo-run")
        say("1. The agent reads a note. Reading is low risk, so policy lets it through.")
        read = await gate.call("read_note", '{"name": "plan.txt"}', context=context)
        say(f"   {read.status}: {read.data!r}   approved by {read.approved_by}")

        say("\n2. The agent sends arguments that do not fit the schema. Nothing runs.")
        wrong = await gate.call("replace_in_note", {"name": "plan.txt", "old": 5}, context=context)
        say(f"   {wrong.status}: {wrong.error}")

        say("\n3. The agent wants to change the note. That is medium risk: a person is asked.")
        arguments = {"name": "plan.txt", "old": "Friday", "new": "Thursday"}
        changed = await gate.call("replace_in_note", arguments, context=context)
        say(f"   {changed.status}: {changed.data or changed.error}   approved by {changed.approved_by}")

        if changed.success:
            say("\n4. It was wrong after all: undo it.")
            undone = await gate.undo(changed.call_id, context=context)
            say(f"   {undone.status}: the note says {(WORKSPACE / 'plan.txt').read_text()!r} again")

        say("\nWhat the audit log knows (every event is chained to the one before):")
        events = await gate.events()
        for event in events:
            who = event.data.get("approved_by") or event.data.get("decided_by") or ""
            say(f"   {event.seq:2}  {event.hash.hex()[:10]}  {event.type:20} {event.data['tool_name']:16} {who}")
        say(f"   {verify(events)} events verified, no gap, no change.")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(asyncio.run(main()))
    finally:
        shutil.rmtree(WORKSPACE)
