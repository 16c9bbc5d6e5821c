"""The examples at the end of every help screen, by command. A test parses each with the command line's own parser."""

from __future__ import annotations

from toolgate.interfaces.cli.help import examples

SERVER = "--server http://127.0.0.1:8642"

EXAMPLES = {
    "": examples(
        "# see it work, without setting anything up",
        "toolgate demo",
        "# a policy in this folder and a database for it, then a server",
        "toolgate init",
        "toolgate serve",
    ),
    "demo": examples(
        "# decide in the browser",
        "toolgate demo",
        "# no questions: every step is decided and checked",
        "toolgate demo --auto",
    ),
    "init": examples(
        "# in this folder",
        "toolgate init",
        "# in the folder shop, with a policy that changes nothing",
        "toolgate init shop --profile readonly",
        "# with the database in a volume of a container",
        "toolgate init --database /data/toolgate.db",
    ),
    "doctor": examples(
        "# this folder",
        "toolgate doctor",
        "# a database elsewhere",
        "toolgate doctor --database postgresql://toolgate@db.example/toolgate",
    ),
    "inbox": examples(
        "# this folder's database",
        "toolgate inbox",
        "# a server, with your token in TOOLGATE_TOKEN",
        f"toolgate inbox {SERVER}",
        "# for a script: what waits, once",
        "toolgate inbox --json",
    ),
    "show": examples(
        "# the approval whose id begins with 3f9a",
        "toolgate show 3f9a",
        "# with long values in full, from a server",
        f"toolgate show 3f9a --full {SERVER}",
    ),
    "approve": examples(
        "toolgate approve 3f9a",
        "# the same call may run 5 more times within 2 hours",
        "toolgate approve 3f9a --remember 5 --for 2h",
        "# as ann, who is in finance",
        'toolgate approve 3f9a --by ann --role finance --reason "Invoice 17"',
    ),
    "deny": examples(
        'toolgate deny 3f9a --reason "Wrong customer"',
        "# on a server",
        f"toolgate deny 3f9a {SERVER}",
    ),
    "reject": examples(
        'toolgate reject 3f9a --reason "Wrong customer"',
    ),
    "edit": examples(
        "# in your editor",
        "toolgate edit 3f9a",
        "# from the command line, or from a file",
        """toolgate edit 3f9a --arguments '{"path": "notes.md"}'""",
        "toolgate edit 3f9a --arguments @arguments.json",
    ),
    "grants": examples(
        "toolgate grants list",
        "toolgate grants revoke 81c2",
    ),
    "grants list": examples(
        "toolgate grants list",
        "# with those that are used up, expired or revoked",
        "toolgate grants list --all --project shop",
    ),
    "grants revoke": examples(
        "# the grant whose id begins with 81c2",
        'toolgate grants revoke 81c2 --reason "The release is done"',
    ),
    "delegations": examples(
        "toolgate delegations give bob --for 7d",
        "toolgate delegations list",
    ),
    "delegations give": examples(
        "# bob may give your vote for a week",
        'toolgate delegations give bob --for 7d --reason "On leave"',
        "# only on payments, until tonight",
        "toolgate delegations give bob --for 8h --tool pay --project shop",
    ),
    "delegations list": examples(
        "toolgate delegations list",
        "# with those that are over or ended",
        "toolgate delegations list --all",
    ),
    "delegations end": examples(
        "# the delegation whose id begins with 81c2",
        "toolgate delegations end 81c2",
    ),
    "call": examples(
        "# wait for approval and print the result",
        f"""toolgate call read_file '{{"path": "README.md"}}' {SERVER}""",
        "# arguments from a file; run again with the same id, it does not pay twice",
        f"toolgate call pay @pay.json --id inv-17 {SERVER}",
        "# pay once more on purpose; a person is asked",
        f"toolgate call pay @pay.json --repeat-of inv-17 {SERVER}",
    ),
    "chat": examples(
        "# a conversation; /quit ends it",
        f"toolgate chat {SERVER}",
        "# one message, for a script",
        f'toolgate chat "Which tests fail?" --json {SERVER}',
    ),
    "history": examples(
        "toolgate history",
        "# the last 100 calls of one run",
        "toolgate history --run run-7 --limit 100",
    ),
    "watch": examples(
        "# what happens from now on",
        "toolgate watch",
        "# the whole log of a project from the beginning, as JSON lines",
        "toolgate watch --after 0 --project shop --json",
    ),
    "undo": examples(
        "# load the tool from my_tools.py in this folder",
        "toolgate undo call-17 --tools my_tools",
        "# on a server, which has the tool",
        f"toolgate undo call-17 {SERVER}",
    ),
    "mode": examples(
        "# what is set",
        "toolgate mode",
        "# stop one run, then let it go on",
        'toolgate mode LOCKDOWN --project shop --run run-7 --reason "it deletes orders"',
        "toolgate mode NORMAL --project shop --run run-7",
        "# stop everybody, on a server",
        f"toolgate mode LOCKDOWN --reason drill {SERVER}",
    ),
    "undo-run": examples(
        "# what would be undone",
        "toolgate undo-run run-7 --tools my_tools --preview",
        "# undo it, and continue where a call cannot be undone",
        "toolgate undo-run run-7 --tools my_tools --skip",
    ),
    "policy": examples(
        "toolgate policy check toolgate.yaml",
        "toolgate policy simulate new.yaml --since 7d",
    ),
    "policy accept": examples(
        "# what changed, and since which revision",
        "toolgate policy accept",
        "# follow it from now on",
        "toolgate policy accept 3f1c0a9be24d",
    ),
    "programs": examples(
        "toolgate programs list",
        "toolgate programs accept .venv/bin/ruff",
    ),
    "programs list": examples(
        "toolgate programs list",
        "# those that are not what they were, for a script",
        "toolgate programs list --changed --json",
    ),
    "programs accept": examples(
        "# after an upgrade of ruff",
        "toolgate programs accept .venv/bin/ruff",
        "# after `npm ci`: all that changed",
        "toolgate programs accept --all",
    ),
    "programs forget": examples(
        "toolgate programs forget .venv/bin/ruff",
    ),
    "policy check": examples(
        "toolgate policy check toolgate.yaml",
        "# in a build: problems as JSON",
        "toolgate policy check . --json",
    ),
    "policy explain": examples(
        "# one call",
        """toolgate policy explain toolgate.yaml --call '{"tool": "run_tests"}'""",
        "# many calls, one JSON object per line, with your own tools",
        "toolgate policy explain . --calls calls.jsonl --tools my_app.tools:TOOLS",
    ),
    "policy test": examples(
        "# the examples in the policy",
        "toolgate policy test toolgate.yaml",
        '# and a file of calls, each with "expect": "allow", "ask" or "deny"',
        "toolgate policy test toolgate.yaml --calls expected.jsonl",
    ),
    "policy simulate": examples(
        "# the last 7 days under a new policy",
        "toolgate policy simulate new.yaml --since 7d",
        "# compare two policies on the recorded calls",
        "toolgate policy simulate new.yaml --against toolgate.yaml",
    ),
    "policy diff": examples(
        "toolgate policy diff toolgate.yaml new.yaml",
    ),
    "policy learn": examples(
        "# the change that would have allowed a call a person was asked about",
        "toolgate policy learn CALL_ID",
        "# and make it, after a look at it",
        "toolgate policy learn CALL_ID --write",
    ),
    "serve": examples(
        "# this folder's policy and database, on port 8642",
        "toolgate serve",
        "# with your own tools, on another port",
        "toolgate serve --tools my_app.tools:TOOLS --port 8080",
    ),
    "worker": examples(
        "# the queue `default` of this folder's database",
        "toolgate worker --tools my_app.tools:TOOLS",
        "# two queues, four calls at the same time",
        "toolgate worker --tools my_app.tools --queue mail --queue pdf --concurrency 4",
    ),
    "runner": examples(
        "# with toolgate.yaml of this folder; the token is in TOOLGATE_TOKEN",
        f"toolgate runner {SERVER}",
        "# with a built-in policy that changes nothing",
        f"toolgate runner {SERVER} --profile readonly",
    ),
    "token": examples(
        "toolgate token create ann --kind person",
        "toolgate token list",
    ),
    "token create": examples(
        "# a person who may use the project `default`",
        "toolgate token create ann --kind person",
        "# an agent in the project shop, for 90 days",
        "toolgate token create agent:bot --kind agent --project shop --expires 90d",
    ),
    "token link": examples(
        "toolgate token link ann",
        "# for a server that browsers reach at another address",
        "toolgate token link ann --server https://toolgate.example --expires 8h",
    ),
    "token list": examples(
        "toolgate token list",
        "toolgate token list --account ann --json",
    ),
    "token revoke": examples(
        "# the id is in `toolgate token list`",
        "toolgate token revoke 4d1f0a2b",
    ),
    "recover": examples(
        "# list them",
        "toolgate recover",
        "# settle one",
        'toolgate recover call-17 --happened --by ann --reason "The bank shows it"',
        "# say that you looked and do not know yet",
        'toolgate recover call-17 --not-yet --by ann --reason "Ask again tomorrow"',
        "# on a server, which knows you by your token",
        f"toolgate recover {SERVER}",
    ),
    "audit": examples(
        "toolgate audit verify",
    ),
    "audit verify": examples(
        "# this folder's database",
        "toolgate audit verify",
        "# a backup, for a script",
        "toolgate audit verify backup.db --json",
    ),
    "db": examples(
        "toolgate db status",
        "toolgate db backup backup.db",
    ),
    "db status": examples(
        "toolgate db status",
        "toolgate db status --database postgresql://toolgate@db.example/toolgate",
    ),
    "db upgrade": examples(
        "toolgate db upgrade",
        "toolgate db upgrade --database postgresql://toolgate@db.example/toolgate",
    ),
    "db backup": examples(
        "# this folder's database",
        "toolgate db backup backup.db",
        "# another database",
        "toolgate db backup shop.db shop-backup.db",
    ),
    "db vacuum": examples(
        "toolgate db vacuum",
    ),
    "db prune": examples(
        "# arguments and results of calls that finished over 30 days ago",
        "toolgate db prune --older-than 30d",
        "# and events over a year old",
        "toolgate db prune --older-than 52w --events",
    ),
    "db move": examples(
        "# toolgate.db of this folder, made by an earlier version",
        "toolgate db move",
        "# what belonged to this folder under its former name, see `toolgate db list`",
        "toolgate db move ~/.local/state/toolgate/workspaces/shop-3f9a/toolgate.db",
    ),
    "db list": examples(
        "toolgate db list",
    ),
    "db import": examples(
        "toolgate db import toolgate.db postgresql://toolgate@db.example/toolgate",
    ),
    "db key": examples(
        "toolgate db key toolgate.key",
    ),
    "db rekey": examples(
        "toolgate db rekey",
    ),
}
"""What to write after the options, by the words after `toolgate`."""
