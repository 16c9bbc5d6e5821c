"""Whether programs can be confined here; tests that need it say so with `needs_sandbox`."""

from __future__ import annotations

import shutil

import pytest

from toolgate.adapters.runners.sandbox.landlock import OLDEST
from toolgate.adapters.runners.sandbox.supervisor import landlock_version

CAN_CONFINE = shutil.which("bwrap") is not None or landlock_version() >= OLDEST
needs_bubblewrap = pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap is not installed")
"""For what landlock alone cannot do: a root of its own, protected files that are empty, new files beside them."""
needs_sandbox = pytest.mark.skipif(not CAN_CONFINE, reason="neither bubblewrap nor landlock can be used here")
