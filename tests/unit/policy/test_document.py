"""Mistakes in a policy file are all named, where they stand, with what was probably meant."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.policy.asking import policy, problems, word

DOCUMENTED = """
    tools:
      write_file:
        category: "system_write"
        allowed_in_modes: ["NORMAL"]
        requires_approval_in_modes: ["ALERT", "DEGRADED", "RECOVERY"]
        forbidden_in_modes: ["LOCKDOWN"]
        allowed_paths:
          - "$HOME/Dev/personal_agent/**"
          - "$HOME/Documents/agent_workspace/**"
        forbidden_paths:
          - "/System/**"
          - "/Library/**"
          - "$HOME/.ssh/**"
        max_file_size_mb: 10
"""


@pytest.mark.parametrize(
    ("mode", "path", "expected"),
    [
        ("NORMAL", "Dev/personal_agent/notes.txt", "allow"),
        ("ALERT", "Dev/personal_agent/notes.txt", "ask"),
        ("LOCKDOWN", "Dev/personal_agent/notes.txt", "deny"),
        ("NORMAL", "Documents/agent_workspace/a/b/c.txt", "allow"),
        ("NORMAL", "Documents/other.txt", "deny"),
        ("NORMAL", "Dev/personal_agent/../../.ssh/config", "deny"),
        ("NORMAL", "Dev/personal_agentx/notes.txt", "deny"),
    ],
)
def test_the_documented_file_works_as_written(tmp_path: Path, mode: str, path: str, expected: str) -> None:
    (tmp_path / "Dev/personal_agent").mkdir(parents=True)
    found = policy(DOCUMENTED, workspace=tmp_path, home=tmp_path)
    arguments = {"path": str(tmp_path / path), "content": "x"}
    assert word(found, arguments, tool="write_file", mode=mode) == expected


def test_every_mistake_is_named_with_its_place_and_the_nearest_key() -> None:
    found = problems(
        """\
        defualt: deny
        tools:
          write_file:
            allowed_path: [x]
            max_file_size_mb: '10'
            allowed_in_modes: [NORMAL, NORML]
            roles: {alowed: [a]}
          x: {modes: {allowed: [NORMAL], forbidden: [NORMAL]}}
          y: 3
          "a b": {}
        categories:
          z: {category: w}
        commands:
          git: {flags: {-n: {valu: int}, -m: nope}}
        """
    )
    assert found == [
        "1:1: unknown key `defualt`; did you mean `default`?",
        "4:5: unknown key `allowed_path`; did you mean `allowed_paths`?",
        "5:23: input should be a valid number, not '10'",
        "6:32: input should be 'NORMAL', 'ALERT', 'DEGRADED', 'LOCKDOWN' or 'RECOVERY', not 'NORML'",
        "7:13: unknown key `alowed`; did you mean `allowed`?",
        "8:14: NORMAL is both in `allowed` and in `forbidden`; keep one",
        "9:6: an entry is a mapping of keys such as `decision` or `allowed_in_modes`",
        "10:3: this is not a tool's name: use letters, digits and `_ . - / :`",
        found[8],
        "14:22: unknown key `valu`; did you mean `value`?",
        "14:38: input should be a valid mapping, not 'nope'",
        "14:38: input should be 'str', 'int', 'path', 'rev', 'glob', 'enum' or 'path_or_rev', not 'nope'",
    ]
    assert found[8].startswith("12:7: unknown key `category`")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("- 1", "a policy file is a mapping"),
        ("version: 2", "input should be 1"),
        ("tools: {a: {zzzzzz: 1}}", "known here: "),
        ("tools: {a: {allowed_paths: ['$FOO/x']}}", "`$FOO` is not known here"),
        ("tools: {a: {allowed_paths: ['${FOO}/x']}}", "`${FOO}` is not known here"),
        ("tools: {a: {allowed_paths: ['${WORKSPACE']}}", "that is not closed"),
        ("protected: ['{secret']", "that is not closed"),
        ("tools: {a: {allowed_paths: ['~/x']}}", "write $HOME"),
        ("protected: ['~/x']", "write $HOME"),
        ("tools: {a: {allowed_in_modes: [NORMAL], modes: {ask: []}}}", "another spelling of `modes: allowed`"),
        ("tools: {a: {decision: allow, examples: [{expect: deny}]}}", "expects deny, but the policy says allow"),
        ("categories: {a: {decision: ask, examples: [{expect: allow}]}}", "expects allow, but the policy says ask"),
        ("tools: {a: {examples: [{expect: deny}]}}", "no rule speaks"),
        ("tools: {a: {examples: [{}]}}", "`expect` is missing"),
        ("commands: {git: {examples: {match: [git push]}}}", "the example `git push` is refused"),
        ("commands: {git: {examples: {no_match: [[git]]}}}", "the example `git` is not refused"),
        ("commands: {git: {executable: bin/git}}", "must be an absolute path"),
        ("commands: {git: {flags: {-n: {runs: true}}}}", "needs a value"),
        ("hosts: {allow: ['a b']}", "is not a host name"),
        ("hosts: {deny_networks: [nowhere]}", "A network is written like"),
        ("tools: {a: {rates: [{limit: 1, window: 1y}]}}", "write a duration"),
        ("tools: {a: {rates: [{limit: 1, window: [1]}]}}", "input should be a valid number"),
    ],
)
def test_a_mistake_is_told_in_words(text: str, words: str) -> None:
    [problem] = problems(text)
    assert words in problem


def test_an_empty_file_and_an_empty_entry_say_nothing() -> None:
    assert word("") == "allow"
    assert word("tools: {act: }") == "allow"
    assert word("default: ask\ntools: {act: {}}") == "ask"


def test_examples_that_hold_are_fine() -> None:
    policy(
        """
        tools:
          "pay*":
            decision: ask
            roles: {allowed: [clerk]}
            examples:
              - {expect: ask, roles: [clerk]}
              - {expect: deny, tool: pay_all}
        categories:
          network:
            decision: deny
            examples: [{expect: deny, tool: fetch, behavior: build, principal: "agent:x", mode: ALERT}]
        commands:
          git:
            subcommands: {status: , push: {decision: deny}}
            examples: {match: [git status], no_match: [git push, [git, stash]]}
        """
    )
