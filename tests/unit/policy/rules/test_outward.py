"""Rules about commands, hosts, rates and budgets."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from tests.unit.kernel.samples import a_call, a_tool
from tests.unit.policy.asking import policy, problems, word

from toolgate.kernel.context import Context, Mode

COMMANDS = """
    tools:
      run: {commands: {allowed: [git, ls]}}
      any: {commands: {argument: line}}
    commands:
      git:
        executable: /usr/bin/git
        flags: {--no-pager: , -C: {value: {type: path, access: list}, decision: ask, reason: elsewhere}}
        subcommands:
          status: {flags: {-s: , --color: {value: {type: enum, choices: [always]}, optional: true, also: [--colour]}}}
          push: {decision: deny, reason: never}
          add: {positionals: [{name: file, value: {type: path, access: write}, at_least: 1, at_most: any}]}
      ls: {executable: "${WORKSPACE}/ls", positionals: [{name: file, value: path}], after_dashes: {name: file}}
      make: {executable: /usr/bin/make, environment: [CI]}
"""


@pytest.mark.parametrize(
    ("argv", "expected"),
    [
        (["git", "status", "-s"], "allow"),
        (["git", "status", "--colour=always"], "allow"),
        (["git", "-C", "sub", "status"], "ask"),
        (["git", "push"], "deny"),
        (["git", "push", "--force"], "deny"),
        (["git", "add", "a.txt"], "allow"),
        (["git", "add", ".env"], "deny"),
        (["git", "add", "/etc/passwd"], "ask"),
        (["git", "stash"], "deny"),
        (["./git", "status"], "deny"),
        (["/tmp/x/ls"], "deny"),
        (["ls", "a.txt"], "allow"),
        (["make"], "deny"),
        (["rm", "-rf", "/"], "deny"),
        ("git status; rm -rf /", "deny"),
        (None, "deny"),
        ([], "deny"),
    ],
)
def test_a_command_is_judged_by_its_grammar(tmp_path: Path, argv: Any, expected: str) -> None:
    assert word(COMMANDS, {"command": argv}, tool="run", workspace=tmp_path) == expected


def test_the_argument_and_the_environment_of_a_command(tmp_path: Path) -> None:
    found = policy(COMMANDS, workspace=tmp_path)
    assert word(found, {"line": ["make"], "env": {"CI": "1"}}, tool="any") == "allow"
    assert word(found, {"line": ["make"], "env": {"LD_PRELOAD": "x"}}, tool="any") == "deny"
    assert word(found, {"line": ["make"], "env": "CI=1"}, tool="any") == "deny"
    assert word(found, {"cmd": "ls", "args": ["a"]}, tool="run") == "allow"


def test_a_command_without_a_grammar_is_never_run() -> None:
    assert word("tools: {run: {commands: {}}}", {"command": ["ls"]}, tool="run") == "deny"


def test_paths_of_commands_answer_to_path_rules(tmp_path: Path) -> None:
    text = COMMANDS.replace("run: {commands:", "run: {forbidden_paths: [private], commands:")
    assert word(text, {"command": ["git", "add", "private/x"]}, tool="run", workspace=tmp_path) == "deny"
    assert word(text, {"command": ["git", "add", "x"], "cwd": "private"}, tool="run", workspace=tmp_path) == "deny"


HOSTS = """
    hosts: {allow: [example.com, "*.example.com"], ask: [ask.example.com], deny: [bad.example.com]}
    tools:
      special:
        hosts: {schemes: [https], ports: [8443], allow: ["*"], allow_networks: [10.0.0.0/8], arguments: [where]}
      strict: {hosts: {}}
"""


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("https://example.com/a", "allow"),
        ("https://www.example.com", "allow"),
        ("https://ask.example.com", "ask"),
        ("https://bad.example.com", "deny"),
        ("https://other.org", "deny"),
        ("https://example.com@other.org", "deny"),
        ("file:///etc/passwd", "deny"),
        ("http://127.0.0.1", "deny"),
        ("http://2130706433", "deny"),
        ("https://example.com:22", "deny"),
        (["https://example.com", "https://bad.example.com"], "deny"),
        (["https://example.com", "https://ask.example.com"], "ask"),
        (5, "deny"),
    ],
)
def test_hosts_hold_for_every_tool_that_takes_urls(url: Any, expected: str) -> None:
    tool = a_tool("fetch", input_schema={"properties": {"url": {}, "page": {"format": "uri"}}})
    assert word(HOSTS, {"url": url}, tool=tool) == expected


def test_a_tools_own_hosts_and_the_general_ones_both_hold() -> None:
    assert word(HOSTS, {"where": "https://example.com:8443"}, tool="special") == "deny"  # the general ports
    own = HOSTS.replace(
        "hosts: {allow: [example.com", "hosts: {ports: [8443], allow_networks: [10.0.0.0/8], allow: ['*'"
    )
    assert word(own, {"where": "https://10.1.2.3:8443/"}, tool="special") == "allow"
    assert word(own, {"where": "http://10.1.2.3:8443/"}, tool="special") == "deny"


def test_a_tool_with_hosts_and_no_url_is_refused() -> None:
    assert word(HOSTS, {"where": "https://example.com"}, tool="strict") == "deny"
    assert word(HOSTS, {"page": 1}, tool=a_tool("strict", input_schema={"properties": {"url": {}}})) == "allow"
    assert word(HOSTS, {}, tool="special") == "allow"


def test_a_policy_of_layers_gives_the_strictest_host(tmp_path: Path) -> None:
    from toolgate.guards.net import parse_url
    from toolgate.policy import load_policy

    (tmp_path / "org.yaml").write_text("layer: org\nhosts: {allow: ['*'], deny: [bad.org], deny_networks: [9.0.0.0/8]}")
    (tmp_path / "mine.yaml").write_text("include: [org.yaml]\nhosts: {allow: ['*'], ask: [slow.org]}")
    hosts = load_policy(tmp_path / "mine.yaml").edges().hosts
    words = [hosts.judge(parse_url(f"https://{name}"))[0] for name in ("a.org", "slow.org", "bad.org")]
    assert words == ["allow", "ask", "deny"]
    address = parse_url("https://9.1.1.1").address
    assert address is not None
    assert hosts.refuse_address(address) is not None


def reservations(text: str, arguments: dict[str, Any], **who: Any) -> list[tuple[str, int, int]]:
    tool = a_tool("act", category="all")
    call = a_call(context=Context(**who), tool_name="act")
    found = [meter(call, arguments) for meter in policy(text).stance(tool).meters]
    return [(one.key, one.limit, one.amount) for one in found]


@pytest.mark.parametrize(
    ("per", "who"),
    [
        ("project", ""),
        ("principal", "agent:a"),
        ("user", "ann"),
        ("session", "s1"),
        ("run", "r1"),
    ],
)
def test_a_rate_is_shared_by_whom_it_says(per: str, who: str) -> None:
    text = f"tools: {{act: {{rates: [{{limit: 5, window: 1m, per: {per}}}]}}}}"
    context = {"principal": "agent:a", "user": "ann", "session_id": "s1", "run_id": "r1"}
    assert reservations(text, {}, **context) == [(f"rate:tools.act:60:{per}={who}", 5, 1)]


def test_of_two_limits_on_the_same_uses_the_lower_counts(tmp_path: Path) -> None:
    from toolgate.policy import load_policy

    (tmp_path / "org.yaml").write_text(
        "layer: org\ntools: {act: {rates: [{limit: 3, window: 1m}], budgets: [{calls: 9, window: 1m}]}}"
    )
    (tmp_path / "mine.yaml").write_text(
        "include: [org.yaml]\n"
        "tools: {act: {rates: [{limit: 5, window: 1m}, {limit: 50, window: 1h}], budgets: [{calls: 8, window: 1m}]}}"
    )
    meters = load_policy(tmp_path / "mine.yaml").stance(a_tool("act")).meters
    found = [meter(a_call(tool_name="act"), {}) for meter in meters]
    assert sorted((one.limit, one.window_s) for one in found) == [(3, 60.0), (8, 60.0), (50, 3600.0)]


def test_a_budget_counts_calls_or_an_amount() -> None:
    text = "tools: {act: {budgets: [{calls: 3, window: 1d}, {field: cost.sum, limit: 9.5, window: 1d}]}}"
    keys = "budget:tools.act::86400:project=", "budget:tools.act:cost.sum:86400:project="
    assert reservations(text, {"cost": {"sum": 0.1}}) == [(keys[0], 3, 1), (keys[1], 9_500_000, 100_000)]


@pytest.mark.parametrize("amount", [-1, "5", None, True, 10**12])
def test_an_amount_that_cannot_be_told_is_denied(amount: Any) -> None:
    text = "tools: {act: {decision: allow, budgets: [{field: sum, limit: 5, window: 1d}]}}"
    assert word(text, {"sum": amount}) == "deny"
    assert word(text, {"sum": 5}) == "allow"
    assert word(text, {}) == "deny"


@pytest.mark.parametrize(
    "budget", ["{window: 1d}", "{calls: 1, field: a, limit: 1, window: 1d}", "{field: a, window: 1d}"]
)
def test_a_budget_is_of_one_kind(budget: str) -> None:
    assert "either `calls`, or `field` and `limit`" in problems(f"tools: {{act: {{budgets: [{budget}]}}}}")[0]


def test_an_excess_is_told_in_words() -> None:
    text = "tools: {act: {rates: [{limit: 1, window: 1m}], budgets: [{field: a, limit: 2, window: 1m}]}}"
    call = a_call(tool_name="act", created_at=datetime.now(UTC))
    said = [meter(call, {"a": 3}).refusal().args[0] for meter in policy(text).stance(a_tool("act")).meters]
    assert said[0].startswith("Rate limit exceeded: 1 in 60 s")
    assert said[1].startswith("Budget exceeded: 2 of `a` in 60 s")


def test_a_finding_that_is_missing_denies() -> None:
    from toolgate.kernel.policy import Facts, judge

    found = policy("tools: {act: {allowed_paths: ['**'], commands: {}, hosts: {}, max_file_size_mb: 1}}")
    tool = a_tool("act")
    judgement = judge(found.stance(tool).rules, a_call(), tool, Facts(Mode.NORMAL, datetime.now(UTC)))
    assert judgement.word == "deny"
    assert {verdict.code for verdict in judgement.verdicts} == {"rule_error"}
