from __future__ import annotations

import functools
import inspect
import json
import logging
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

import toolgate
from toolgate.errors import (
    DefinitionError,
    NotAsyncError,
    ToolApprovalDeniedError,
    ToolDeniedError,
    ToolInputError,
    UsageError,
)
from toolgate.hitl import (
    ApprovalLevel,
    HITLConfig,
    HITLToolResult,
    as_tool,
    calculate_confidence,
    clear_hitl_gate,
    determine_approval_level,
    get_hitl_config,
    get_hitl_gate,
    hitl_tool,
    invoke,
    is_hitl_pending,
    is_hitl_tool,
    resume,
    set_hitl_gate,
)
from toolgate.hitl.decorators import _is_sensitive_key, _log_auto_execution
from toolgate.hitl.examples import (
    approve_expense,
    delete_project,
    get_hitl_tools,
    send_bulk_notification,
    sign_contract,
)
from toolgate.kernel.policy import Default, Policy

RAN: list[Any] = []


@pytest.fixture(autouse=True)
def nothing_ran() -> None:
    RAN.clear()


@hitl_tool(auto_threshold=70)
async def routine(value: str, amount: float = 0, password: str = "") -> dict[str, Any]:
    """Do something routine.

    Args:
        value: What to do.
    """
    RAN.append((value, amount))
    return {"value": value}


def test_levels_are_text() -> None:
    assert [str(level.value) for level in ApprovalLevel] == ["auto", "quick", "full"]
    assert issubclass(ApprovalLevel, str)


def test_the_configuration_has_its_documented_defaults() -> None:
    assert HITLConfig().model_dump() == {
        "auto_threshold": 85, "quick_threshold": 60, "approval_type": "general", "risk_level": "medium",
        "requires_reason": False, "approve_label": "Approve", "reject_label": "Reject", "description_template": None,
    }  # fmt: skip


@pytest.mark.parametrize("wrong", [{"auto_threshold": 101}, {"quick_threshold": -1}, {"auto_threshold": 150}])
def test_thresholds_are_between_0_and_100(wrong: dict[str, int]) -> None:
    with pytest.raises(ValidationError):
        HITLConfig(**wrong)  # type: ignore[arg-type]  # numbers only


def test_thresholds_are_compared_when_all_are_known() -> None:
    assert HITLConfig(auto_threshold=50).quick_threshold == 50
    assert HITLConfig(auto_threshold=90).quick_threshold == 60
    assert HITLConfig(quick_threshold=70, auto_threshold=70).quick_threshold == 70
    with pytest.raises(ValidationError):
        HITLConfig(auto_threshold=50, quick_threshold=60)
    with pytest.raises(ValidationError):
        HITLConfig(quick_threshold=90)
    config = HITLConfig(quick_threshold=60)
    with pytest.raises(ValidationError):
        config.auto_threshold = 10


@pytest.mark.parametrize(
    ("confidence", "level"), [(100, "auto"), (85, "auto"), (84, "quick"), (60, "quick"), (59, "full"), (0, "full")]
)
def test_confidence_chooses_the_level(confidence: int, level: str) -> None:
    assert determine_approval_level(confidence, HITLConfig()) == level
    assert determine_approval_level(confidence) == level


def test_custom_thresholds_choose_too() -> None:
    config = HITLConfig(auto_threshold=95, quick_threshold=70)
    assert [determine_approval_level(value, config).value for value in (95, 94, 69)] == ["auto", "quick", "full"]


def test_results_have_ids_of_their_own() -> None:
    made = [
        HITLToolResult(
            requires_approval=True, approval_level=ApprovalLevel.QUICK, confidence_score=1, tool_name="t",
            tool_args={}, config=HITLConfig(),
        )
        for _ in range(2)
    ]  # fmt: skip
    assert made[0].request_id != made[1].request_id
    assert made[0].approval_id is None


def test_a_decorated_function_keeps_its_name_words_and_signature() -> None:
    assert (routine.__name__, str(inspect.signature(routine)).startswith("(value: 'str'")) == ("routine", True)
    assert "Do something routine" in (routine.__doc__ or "")
    assert is_hitl_tool(routine)
    assert not is_hitl_tool(json.dumps)
    config = get_hitl_config(routine)
    assert config is not None
    assert config.auto_threshold == 70
    assert get_hitl_config(print) is None
    assert routine._hitl_config is config


@pytest.mark.parametrize("given", [lambda: None, functools.partial(print)])
def test_a_plain_function_is_refused_when_it_is_decorated(given: Any) -> None:
    with pytest.raises(NotAsyncError, match="async"):
        hitl_tool()(given)
    with pytest.raises(TypeError):
        hitl_tool()(given)


def test_an_async_generator_is_refused() -> None:
    async def stream() -> Any:
        yield 1

    with pytest.raises(NotAsyncError):
        hitl_tool()(stream)


def test_a_function_that_wants_the_hosts_context_is_refused() -> None:
    async def nosy(_hitl_context: Any) -> None: ...

    with pytest.raises(DefinitionError, match="_hitl_context"):
        hitl_tool()(nosy)


async def test_high_confidence_runs_at_once_and_returns_the_tools_own_result() -> None:
    class Thing:
        pass

    thing = Thing()

    @hitl_tool(auto_threshold=50)
    async def give() -> Any:
        return thing

    assert await give() is thing
    assert await routine("x") == {"value": "x"}
    assert RAN == [("x", 0)]


async def test_the_context_raises_confidence_and_never_reaches_the_tool() -> None:
    @hitl_tool(auto_threshold=80)
    async def act(**rest: Any) -> dict[str, Any]:
        return rest

    assert is_hitl_pending(await act(a=1))
    assert await act(a=1, _hitl_context={"user_role": "admin", "user_id": "ann", "session_id": 7}) == {"a": 1}
    assert await act(_hitl_context={"user_role": "admin", "workspace_verified": True}) == {}


async def test_low_confidence_returns_a_marker_and_runs_nothing() -> None:
    result = await routine("x", amount=5000, password="correct-horse-9")
    assert is_hitl_pending(result)
    told = json.loads(json.dumps(result))["hitl_result"]
    assert (told["requires_approval"], told["approval_level"], told["confidence_score"]) == (True, "full", 55)
    assert (told["tool_name"], told["tool_args"]["amount"]) == ("routine", 5000)
    assert told["config"]["auto_threshold"] == 70
    assert "correct-horse" not in json.dumps(told)
    assert (await get_hitl_gate().approvals.get(told["approval_id"])).is_pending
    assert RAN == []


@pytest.mark.parametrize("amount", [5000, "5000", Decimal(5000), Decimal("5000.5")], ids=repr)
async def test_positional_arguments_count_and_are_shown(amount: Any) -> None:
    @hitl_tool(auto_threshold=70)
    async def pay(to: str, amount: Any) -> str:
        return to

    told = (await pay("bob", amount))["hitl_result"]
    assert told["confidence_score"] == 55
    assert told["tool_args"]["to"] == "bob"
    assert float(told["tool_args"]["amount"]) >= 5000


@pytest.mark.filterwarnings("ignore:Default value")
async def test_a_default_counts_and_is_shown_unless_it_cannot_be() -> None:
    @hitl_tool(auto_threshold=70)
    async def pay(amount: float = 5000.0, sink: Any = object()) -> bool:  # noqa: B008  # a default nobody can show
        return sink is not None

    told = (await pay())["hitl_result"]
    assert told["tool_args"] == {"amount": 5000.0}


async def test_an_argument_nobody_could_be_shown_is_refused() -> None:
    with pytest.raises(ToolInputError, match="cannot be shown"):
        await routine(object())


async def test_an_amount_too_fine_for_a_number_stays_text() -> None:
    @hitl_tool(auto_threshold=0)
    async def pay(amount: Decimal) -> str:
        return str(amount)

    assert await pay(Decimal("0.1234567890123456789")) == "0.1234567890123456789"


async def test_after_approval_it_runs_once_however_often_it_is_resumed() -> None:
    marker = await routine("x", 5000)
    approval_id = marker["hitl_result"]["approval_id"]
    again = await resume(approval_id)
    assert is_hitl_pending(again)
    assert again["hitl_result"]["config"]["auto_threshold"] == 70
    await get_hitl_gate().decide(approval_id, "approve", by="ann")
    assert await resume(approval_id) == {"value": "x"}
    assert await resume(approval_id, wait=True) == {"value": "x"}
    assert RAN == [("x", 5000)]


async def test_a_rejection_needs_its_reason_and_is_final() -> None:
    marker = await delete_project("P-1")
    approval_id = marker["hitl_result"]["approval_id"]
    gate = get_hitl_gate()
    with pytest.raises(UsageError, match="reason"):
        await gate.decide(approval_id, "deny", by="ann")
    await gate.decide(approval_id, "deny", by="ann", reason="keep it")
    with pytest.raises(ToolApprovalDeniedError, match="keep it"):
        await resume(approval_id)


async def test_a_crash_of_an_automatic_run_is_audited_and_raised_as_it_is(caplog: pytest.LogCaptureFixture) -> None:
    @hitl_tool(auto_threshold=0)
    async def boom(token: str) -> None:
        raise LookupError("gone")

    with caplog.at_level(logging.INFO, "toolgate.hitl"), pytest.raises(LookupError, match="gone"):
        await boom("secret-value-123")
    assert "failed: LookupError" in caplog.text
    assert "secret-value" not in caplog.text
    assert "tool.failed" in [event.type for event in await get_hitl_gate().events()]


async def test_an_automatic_run_is_logged_with_tool_confidence_and_user(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "toolgate.hitl"):
        await routine("x", _hitl_context={"user_id": "u-1", "workspace_id": "w-1"})
    assert "routine" in caplog.text
    assert "'confidence_score': 70" in caplog.text
    assert "u-1" in caplog.text
    started = [event for event in await get_hitl_gate().events() if event.type == "tool.started"]
    assert started[0].data["approved_by"] == "policy:auto"


@pytest.mark.parametrize("key", ["password", "DB_PASSWORD", "client_secret", "token", "api_key", "credentials", "auth"])
def test_sensitive_keys_are_hidden_in_the_log(key: str, caplog: pytest.LogCaptureFixture) -> None:
    assert _is_sensitive_key(key)
    assert not _is_sensitive_key("name")
    with caplog.at_level(logging.INFO, "toolgate.hitl"):
        _log_auto_execution("t", {"deep": [{key: "s3cr3t"}], "name": "ok"}, 90)
    assert "s3cr3t" not in caplog.text
    assert "ok" in caplog.text


async def test_what_the_policy_denies_is_raised() -> None:
    gate = toolgate.open("memory://", policy=Policy(default=Default.DENY, revision="no"))
    set_hitl_gate(gate)
    with pytest.raises(ToolDeniedError):
        await routine("x")
    assert RAN == []


async def test_a_context_among_a_models_arguments_is_refused_not_trusted() -> None:
    with pytest.raises(ToolInputError, match="host"):
        await invoke(delete_project, {"project_id": "P", "_hitl_context": {"user_role": "admin"}})
    assert is_hitl_pending(await invoke(delete_project, {"project_id": "P"}, context={"user_role": "admin"}))
    refused = await get_hitl_gate().call("delete_project", {"project_id": "P", "_hitl_context": {"user_role": "admin"}})
    assert refused.error_code == "invalid_arguments"


@pytest.mark.parametrize("arguments", [{}, {"project_id": "P", "user_role": "admin"}])
async def test_a_models_arguments_that_do_not_fit_are_bad_input(arguments: dict[str, Any]) -> None:
    with pytest.raises(ToolInputError, match="delete_project"):
        await invoke(delete_project, arguments)


async def test_the_gate_hears_what_the_host_says_of_the_workspace_as_the_score_does() -> None:
    @hitl_tool(auto_threshold=75)
    async def touch() -> str:
        return "touched"

    assert await touch(_hitl_context={"workspace_verified": 1}) == "touched"
    assert is_hitl_pending(await touch(_hitl_context={"workspace_verified": "false"}))


async def test_the_description_is_filled_with_masked_arguments_and_names_only() -> None:
    @hitl_tool(auto_threshold=100, description_template="Send {to} {password} {to.__class__} {missing}?")
    async def send(to: str, password: str) -> None: ...

    marker = await send("bob", "correct-horse-9")
    message = (await get_hitl_gate().approvals.get(marker["hitl_result"]["approval_id"])).message
    assert message.startswith("Send bob ")
    assert "correct-horse" not in message
    assert message.endswith("{to.__class__} {missing}?")

    @hitl_tool(auto_threshold=100, description_template="broken {")
    async def other() -> None: ...

    marker = await other()
    assert (await get_hitl_gate().approvals.get(marker["hitl_result"]["approval_id"])).message == "broken {"


async def test_labels_reach_the_approver() -> None:
    marker = await sign_contract("C-1", 5000)
    artifact = await get_hitl_gate().approvals.artifact(marker["hitl_result"]["approval_id"])
    assert (artifact.approve_label, artifact.reject_label) == ("Sign contract", "Do not sign")
    assert artifact.message == "Sign contract C-1 for 5000?"
    assert artifact.factors[0].startswith("50")


@pytest.mark.parametrize(
    ("tool", "auto", "quick", "reason", "risk"),
    [
        (sign_contract, 95, 70, True, "high"), (delete_project, 90, 60, True, "high"),
        (approve_expense, 85, 65, False, "medium"), (send_bulk_notification, 80, 50, False, "low"),
    ],
)  # fmt: skip
def test_the_examples_are_configured_as_documented(tool: Any, auto: int, quick: int, reason: bool, risk: str) -> None:
    config = get_hitl_config(tool)
    assert config is not None
    assert (config.auto_threshold, config.quick_threshold, config.requires_reason, config.risk_level) == (
        auto, quick, reason, risk,
    )  # fmt: skip


async def test_the_examples_are_four_and_run_after_approval() -> None:
    tools = get_hitl_tools()
    assert [tool.__name__ for tool in tools] == [
        "sign_contract", "delete_project", "approve_expense", "send_bulk_notification",
    ]  # fmt: skip
    calls = [("C", 10), ("P",), ("E", 5000), (["a"], "hi")]
    levels = []
    for tool, given in zip(tools, calls, strict=True):
        told = (await tool(*given))["hitl_result"]
        levels.append(told["approval_level"])
        await get_hitl_gate().decide(told["approval_id"], "approve", by="bob")
        assert (await resume(told["approval_id"]))["status"] in ("signed", "deleted", "approved", "sent")
    assert levels == ["full", "full", "full", "quick"]


async def test_functions_of_one_name_do_not_run_for_each_other() -> None:
    def make(value: int) -> Any:
        @hitl_tool(auto_threshold=0)
        async def same() -> int:
            return value

        return same

    first, second = make(1), make(2)
    assert (await first(), await second(), await first()) == (1, 2, 1)


async def test_an_approval_survives_a_restart(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/hitl.db"
    first = toolgate.open(url)
    set_hitl_gate(first)
    approval_id = (await routine("x", 5000))["hitl_result"]["approval_id"]
    await first.aclose()
    set_hitl_gate(toolgate.open(url))
    await get_hitl_gate().decide(approval_id, "approve", by="ann")
    assert await resume(approval_id) == {"value": "x"}


async def test_a_marker_of_an_unknown_tool_has_the_default_configuration(tmp_path: Path) -> None:
    gate = toolgate.open("memory://")
    set_hitl_gate(gate)
    approval_id = (await routine("x", 5000))["hitl_result"]["approval_id"]
    gate.registry.discard("routine")
    assert (await resume(approval_id))["hitl_result"]["config"]["auto_threshold"] == 85


def test_a_tool_can_be_offered_elsewhere() -> None:
    assert as_tool(routine).name == "routine"
    with pytest.raises(DefinitionError):
        as_tool(print)
    assert clear_hitl_gate() is None
    assert calculate_confidence("x", {}) == 70
