"""What a card takes of the CPU: one question with 1 MB of text of each kind. Prints one JSON line of MB/s.

A card is made as the inbox makes it, and what it shows is drawn as HTML and for a terminal. Masking is not part of it:
a question's arguments are masked when it is asked.
"""

import json
import time
from datetime import UTC, datetime

from benchmarks.text_kinds import kinds

from toolgate.interfaces.server.cards import card_of
from toolgate.kernel.approval import Approval
from toolgate.kernel.artifact import artifact_of
from toolgate.kernel.surfaces import to_html, to_terminal

SIZE = 1_000_000
ROUNDS = 5
NOW = datetime(2026, 1, 1, tzinfo=UTC)


def question(text: str) -> Approval:
    """Return a question whose tool would write this text."""
    return Approval(
        id="a1",
        project="p",
        call_id="c1",
        tool_name="write_file",
        message="Write a file?",
        digest="0" * 64,
        nonce="n",
        definition_hash="h",
        requester="agent",
        created_at=NOW,
        expires_at=NOW,
        arguments={"path": "notes.txt", "content": text},
    )


def card_s(approval: Approval) -> float:
    """Return the CPU seconds one card takes."""
    began = time.process_time()
    artifact = artifact_of(approval)
    card_of(approval, artifact)
    to_html(artifact)
    to_terminal(artifact)
    return time.process_time() - began


def main() -> None:
    texts = {name: question(text) for name, text in kinds(SIZE).items()}
    sizes = {name: len(one.arguments["content"].encode()) for name, one in texts.items()}
    card_s(question("é\u0301"))  # what is made at the first use is not measured
    best = dict.fromkeys(texts, float("inf"))
    for _ in range(ROUNDS):
        for name, approval in texts.items():
            best[name] = min(best[name], card_s(approval))
    print(json.dumps({name: sizes[name] / seconds / 1e6 for name, seconds in best.items()}))


if __name__ == "__main__":
    main()
