"""What the numbers must reach, and whether they do. Judged on ratios of medians taken in the same run.

A target's title never changes with what was measured: the documentation page finds its row by it.
"""

from dataclasses import asdict, dataclass
from typing import Any

from benchmarks.diff_cases import LOG_INSERTED
from benchmarks.text_kinds import SECRET

Results = dict[str, Any]
SECTIONS = (
    "start",
    "parking",
    "durable",
    "decision",
    "diff",
    "masking",
    "cards",
    "keys",
    "adapters",
    "policy",
    "sandbox",
    "server",
    "agent",
)
NOTHING: Results = {"calls": [], **{section: {} for section in SECTIONS}}
"""What a run that measured nothing has found."""

CALL_LIMITS = {"stageflow": 1.0, "pydantic_ai": 0.6, "validate_call": 2.0}
FORM_LIMITS = (
    ("call with a 300-byte form / stageflow with events", 1.1, "stageflow_300"),
    ("call with a 300-byte form / pydantic-ai's tool manager, ungoverned", 1.5, "pydantic_ai_300"),
    ("call with a 300-byte form / the same at commit 2e57217", 0.7, "toolgate_2e57217_300"),
)
KEY_LIMIT_US = 6.0
ADAPTER_LIMIT_US = 90.0
WORKFLOW_LIMIT = 1 / 3
START_LIMIT = 2.0
PARKED = 10_000
PARKED_LIMIT_MB = 60.0
WAKE_LIMIT = 1.5
"""About one, with room for noise and colder caches; a wake that searched 10,000 calls would be far beyond."""

RAW_SHARE = 0.5
"""Of what a loop with ready-made rows writes: chaining, sealing, masking and 256 tasks may take as much again."""
AIOSQLITE_TIMES = 8.0
DURABLE_CALL_LIMIT = 4.0
APPROVAL_SHARE = 0.5
REOPEN_LIMIT = 3.0
DECISION_TIMES = 4.0
"""A decision takes at most a quarter of a peer's time."""
GROWTH_LIMIT = 1.5
"""About one, with room for noise: the number of tools is no part of a decision."""
REPLAY_SHARE = 0.5
DECISION_LIMIT = 3.0
"""One fsynced commit is the claim itself; the rest is for waking up and checking what was approved."""
DIFF_LIMITS = {
    "text_unique": ("diff of 1 MB, unique lines, 1 % changed / stageflow", 1.0),
    "text_150": ("diff of 1 MB, 150 distinct lines / stageflow", 0.1),
    "json_changed": ("diff of 1 MB of JSON, 1 % changed / stageflow", 0.2),
    "json_head": ("diff of a JSON list, one head insertion / stageflow", 0.1),
}
HEAD_OPERATIONS = 5.0
TEXT_LIMIT_MB = 20.0
SECRET_TEXT_LIMIT_MB = 10.0
TEXT_SPREAD = 4.0
"""How harmless data looks must not decide how fast it is."""
MASKING_LIMIT_US = 6.0
POST_SHARE = 0.6
STREAM_LIMIT = 2.0
HEALTH_LIMIT_MS = 50.0
"""Within this, 99 of 100 who ask for something small are answered while large calls arrive."""
CONVERSATION_LIMIT = 3.0
SANDBOX_LIMITS = (
    ("confined /bin/true / bubblewrap alone, same flags", 1.8, "confined_ms", "bare_ms"),
    ("read_file / governed no-op plus open and read", 1.5, "read_us", "no_op_and_plain_us"),
    ("read_file of 1 MB / plain read plus masking it once", 5.0, "large_read_ms", "plain_read_and_mask_ms"),
    ("write of 1 MB with undo data / write, fsync, rename", 12.0, "write_ms", "plain_write_ms"),
    ("writing command in an overlay of 2,000 files / without, plus 30 ms", 1.0, "overlay_ms", "writing_and_30_ms"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """One target: its limit, the ratio of medians that is judged, and the ratio of the best rounds, uncorrected.

    The ratio must not exceed the limit; with `at_least`, it must not fall below it.
    """

    title: str
    limit: float
    unit: str = "x"
    at_least: bool = False
    measured: float | None = None
    of_minima: float | None = None

    @property
    def is_reached(self) -> bool | None:
        """Whether the target is reached; None when it was not measured."""
        if self.measured is None:
            return None
        return self.measured >= self.limit if self.at_least else self.measured <= self.limit

    def as_json(self) -> dict[str, Any]:
        """Return the verdict for the results file."""
        return {**asdict(self), "is_reached": self.is_reached}


def judge(results: Results) -> list[Verdict]:
    """Return every target's verdict, those without numbers included."""
    calls = {row["name"]: row for row in results["calls"]}
    ours = calls.get("toolgate")
    verdicts = [
        _compare(f"governed call / {name}", limit, ours, calls.get(name), key="call_us", raw="raw_us")
        for name, limit in CALL_LIMITS.items()
    ]
    verdicts += [
        _compare(title, limit, calls.get("toolgate_300"), calls.get(name), key="call_us", raw="raw_us")
        for title, limit, name in FORM_LIMITS
    ]
    verdicts.append(
        _compare(
            "approval workflow in memory / the same at commit 2e57217",
            WORKFLOW_LIMIT,
            calls.get("toolgate_approval"),
            calls.get("toolgate_2e57217_approval"),
            key="call_us",
            raw="raw_us",
        )
    )
    start = results["start"]
    verdicts.append(
        _compare(
            "import, open, first call / import pydantic, first validation",
            START_LIMIT,
            start.get("toolgate"),
            start.get("pydantic"),
            key="start_ms",
            raw="start_ms",
        )
    )
    parking = results["parking"]
    many, one = parking.get("many"), parking.get("one")
    verdicts.append(
        Verdict(
            title=f"memory of {PARKED:,} parked calls",
            limit=PARKED_LIMIT_MB,
            unit=" MB",
            measured=many["growth_mb"]["median"] if many else None,
            of_minima=many["growth_mb"]["min"] if many else None,
        )
    )
    verdicts.append(
        _compare("wake among many / wake of one", WAKE_LIMIT, many, one, key="wake_references", raw="wake_p50_us")
    )
    decision = _at_most(
        "decision committed to handler start / one fsynced commit",
        DECISION_LIMIT,
        results.get("decision"),
        "handler_us",
        "commit_us",
    )
    sandbox = [
        _at_most(title, limit, results.get("sandbox"), ours, theirs) for title, limit, ours, theirs in SANDBOX_LIMITS
    ]
    return [
        *verdicts,
        *_durable(results["durable"]),
        decision,
        *_diffs(results["diff"]),
        *_masking(results["masking"]),
        *_texts("cards of 1 MB of text", results["cards"]),
        _key(results["keys"]),
        _adapter(results["adapters"]),
        *_policy(results["policy"]),
        *sandbox,
        *_server(results["server"]),
        *_agent(results["agent"]),
    ]


def _agent(found: Results) -> list[Verdict]:
    return [
        _at_most(
            "conversation with 20 calls, 5 approved / its bare round trips and commits",
            CONVERSATION_LIMIT,
            found,
            "conversation_ms",
            "bare_ms",
        ),
        Verdict(
            title="threads that 200 waiting conversations add",
            limit=0.0,
            unit="",
            measured=found["waiting_threads"]["max"] if found else None,
        ),
    ]


def _server(found: Results) -> list[Verdict]:
    posts, streams, large = found.get("posts"), found.get("streams"), found.get("large")
    bare = (posts, "bare_per_s")
    return [
        _at_least("approve POSTs / bare route with one durable write", POST_SHARE, (posts, "approve_per_s"), bare),
        _at_least("result POSTs / bare route with one durable write", POST_SHARE, (posts, "result_per_s"), bare),
        _at_most("memory of a client / bare stream", STREAM_LIMIT, streams, "ours_memory_kb", "bare_memory_kb"),
        _at_most(
            "CPU of a delivery / bare stream",
            STREAM_LIMIT,
            streams,
            "ours_delivery_us",
            "bare_delivery_us",
        ),
        Verdict(
            title="clients that lost or repeated an event in a storm of reconnects",
            limit=0.0,
            unit="",
            measured=streams["ours_storm_wrong"]["max"] if streams else None,
        ),
        Verdict(
            title="99th percentile of /healthz during 20 calls of 1 MB",
            limit=HEALTH_LIMIT_MS,
            unit=" ms",
            measured=large["health_p99_ms"]["median"] if large else None,
            of_minima=large["health_p99_ms"]["min"] if large else None,
        ),
    ]


def _durable(found: Results) -> list[Verdict]:
    changes, call = found.get("changes"), found.get("call")
    flows, reopen = found.get("approvals"), found.get("reopen")
    return [
        _at_least("fsynced changes / raw group commit", RAW_SHARE, (changes, "ours_per_s"), (changes, "raw_per_s")),
        _at_least(
            "fsynced changes / aiosqlite, one transaction each",
            AIOSQLITE_TIMES,
            (changes, "ours_per_s"),
            (found.get("aiosqlite"), "per_s"),
        ),
        _at_least(
            "approval workflows / bare transitions", APPROVAL_SHARE, (flows, "ours_per_s"), (flows, "bare_per_s")
        ),
        _at_most("kill-safe call / memory call", DURABLE_CALL_LIMIT, call, "sqlite_us", "memory_us"),
        _at_most("opening 110,000 calls / sqlite3 and a count", REOPEN_LIMIT, reopen, "ours_ms", "plain_ms"),
    ]


def _diffs(found: Results) -> list[Verdict]:
    verdicts = []
    for case, (title, limit) in DIFF_LIMITS.items():
        sides = found.get(case, {})
        verdicts.append(_compare(title, limit, sides.get("toolgate"), sides.get("stageflow"), key="ms", raw="ms"))
    log, head = (found.get(case, {}).get("toolgate") for case in ("text_log", "json_head"))
    wrong = abs(log["additions"]["max"] - LOG_INSERTED) + log["deletions"]["max"] if log else None
    operations = head["operations"]["max"] if head else None
    return [
        *verdicts,
        Verdict(title="miscounted lines of a repetitive log", limit=0.0, unit="", measured=wrong),
        Verdict(title="operations for one head insertion", limit=HEAD_OPERATIONS, unit="", measured=operations),
    ]


def _masking(found: Results) -> list[Verdict]:
    speeds = {kind: speed for kind, speed in found.items() if kind != "call_us"}
    taken = found["call_us"]["median"] if found else None
    call = Verdict(title="masking in a call with a 300-byte form", limit=MASKING_LIMIT_US, unit=" us", measured=taken)
    return [*_texts("masking 1 MB of text", speeds), call]


def _key(found: Results) -> Verdict:
    added = found["key_added_us"]["median"] if found else None
    return Verdict(title="effect key in a call in memory", limit=KEY_LIMIT_US, unit=" us", measured=added)


def _adapter(found: Results) -> Verdict:
    added = found["adapter_added_us"]["median"] if found else None
    title = "governed no-op through Pydantic AI's adapter over the ungoverned one, in memory"
    return Verdict(title=title, limit=ADAPTER_LIMIT_US, unit=" us", measured=added)


def _texts(what: str, speeds: Results) -> list[Verdict]:
    plain = [speed["median"] for kind, speed in speeds.items() if kind not in SECRET]
    secret = [speed["median"] for kind, speed in speeds.items() if kind in SECRET]
    return [
        Verdict(
            title=f"{what}, the slowest kind without secrets",
            limit=TEXT_LIMIT_MB,
            unit=" MB/s",
            at_least=True,
            measured=min(plain, default=None),
        ),
        Verdict(
            title=f"{what}, the slowest kind full of secrets",
            limit=SECRET_TEXT_LIMIT_MB,
            unit=" MB/s",
            at_least=True,
            measured=min(secret, default=None),
        ),
        Verdict(
            title=f"{what}, fastest kind / slowest, without secrets",
            limit=TEXT_SPREAD,
            measured=max(plain) / min(plain) if plain else None,
        ),
    ]


def _policy(found: Results) -> list[Verdict]:
    ours = found.get("toolgate")
    verdicts = [
        _at_least(f"decisions / {name}", DECISION_TIMES, (ours, "per_s"), (found.get(name), "per_s"))
        for name in ("cedarpy", "pycasbin")
    ]
    verdicts += [
        _at_most("call under a policy, added / governed no-op call", 1.0, ours, "added_us", "plain_call_us"),
        _at_most("one path check, added / governed call + 3 openat2", 1.0, ours, "path_added_us", "path_allowance_us"),
        _at_most("a decision among 2,000 tools / among 140", GROWTH_LIMIT, ours, "decide_huge_us", "decide_small_us"),
        _at_least(
            "replayed calls / bare decisions about them", REPLAY_SHARE, (ours, "simulate_per_s"), (ours, "bare_per_s")
        ),
    ]
    return verdicts


def _at_least(title: str, limit: float, ours: tuple[Any, str], theirs: tuple[Any, str]) -> Verdict:
    (mine, my_key), (other, other_key) = ours, theirs
    if not mine or not other:
        return Verdict(title=title, limit=limit, at_least=True)
    my_numbers, other_numbers = mine[my_key], other[other_key]
    return Verdict(
        title=title,
        limit=limit,
        at_least=True,
        measured=my_numbers["median"] / other_numbers["median"],
        of_minima=my_numbers["max"] / other_numbers["max"],
    )


def _at_most(title: str, limit: float, found: Any, ours: str, theirs: str) -> Verdict:
    if not found:
        return Verdict(title=title, limit=limit)
    return Verdict(
        title=title,
        limit=limit,
        measured=found[ours]["median"] / found[theirs]["median"],
        of_minima=found[ours]["min"] / found[theirs]["min"],
    )


def _compare(title: str, limit: float, ours: Any, theirs: Any, *, key: str, raw: str) -> Verdict:
    if not ours or not theirs:
        return Verdict(title=title, limit=limit)
    return Verdict(
        title=title,
        limit=limit,
        measured=ours[key]["median"] / theirs[key]["median"],
        of_minima=ours[raw]["min"] / theirs[raw]["min"],
    )
