"""The agent on the server: takes a person's message, asks a model, calls tools through the gate, answers.

`loop.py` is one run from message to answer; `resident.py` keeps many of them, through restarts. A model is anything
that has `answer` (`model.py`): the scripted one needs no key, `provider.py` speaks to every other.
"""

from __future__ import annotations

from toolgate.agent.build import build_agent
from toolgate.ports.agent import Turn

__all__ = ["Turn", "build_agent"]
