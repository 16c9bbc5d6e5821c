"""cedarpy: the same 200 tools as Cedar policies, parsed once; one decision per request."""

import json

import cedarpy
from benchmarks.policy_workload import ARGUMENTS, CHOSEN, TOOLS, decisions_per_second

PERMIT = """
@id("tool_{0}")
permit (principal in Role::"agent", action == Action::"call", resource == Tool::"tool_{0}")
when {{ context.mode == "NORMAL" && context.amount <= 100 }};
"""
POLICIES = cedarpy.PolicySet.from_str("".join(PERMIT.format(number) for number in range(TOOLS)))
ENTITIES = cedarpy.Entities.from_json_str(
    json.dumps(
        [
            {"uid": {"type": "Agent", "id": "a"}, "attrs": {}, "parents": [{"type": "Role", "id": "agent"}]},
            {"uid": {"type": "Role", "id": "agent"}, "attrs": {}, "parents": []},
        ]
    )
)
REQUEST = {
    "principal": 'Agent::"a"',
    "action": 'Action::"call"',
    "resource": f'Tool::"{CHOSEN}"',
    "context": {"mode": "NORMAL", "amount": ARGUMENTS["amount"]},
}


def decide() -> bool:
    """Ask whether the call is allowed."""
    return bool(cedarpy.is_authorized(REQUEST, POLICIES, ENTITIES).decision == cedarpy.Decision.Allow)


if __name__ == "__main__":
    print(json.dumps({"per_s": decisions_per_second(decide)}))
