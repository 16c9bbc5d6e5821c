"""The sandbox runner: `runner` runs hooks, `sandbox` chooses and tests a backend, the backends confine."""

from toolgate.adapters.runners.sandbox.runner import SandboxRunner
from toolgate.adapters.runners.sandbox.sandbox import Sandbox

__all__ = ["Sandbox", "SandboxRunner"]
