"""pycasbin: the same 200 tools as policy lines with a role, a mode and a limit; one decision per request."""

import json

import casbin
from benchmarks.policy_workload import ARGUMENTS, CHOSEN, TOOLS, decisions_per_second

MODEL = """
[request_definition]
r = sub, obj, mode, amount
[policy_definition]
p = sub, obj, mode, most
[role_definition]
g = _, _
[policy_effect]
e = some(where (p.eft == allow))
[matchers]
m = r.obj == p.obj && r.mode == p.mode && g(r.sub, p.sub) && r.amount <= int(p.most)
"""


def build() -> casbin.Enforcer:
    """Return an enforcer that holds the policy in memory."""
    model = casbin.Enforcer.new_model(text=MODEL)
    enforcer = casbin.Enforcer(model)
    enforcer.add_function("int", int)
    for number in range(TOOLS):
        enforcer.add_policy("agent", f"tool_{number}", "NORMAL", "100")
    enforcer.add_grouping_policy("a", "agent")
    return enforcer


ENFORCER = build()


def decide() -> bool:
    """Ask whether the call is allowed."""
    return bool(ENFORCER.enforce("a", CHOSEN, "NORMAL", ARGUMENTS["amount"]))


if __name__ == "__main__":
    print(json.dumps({"per_s": decisions_per_second(decide)}))
