"""What every adapter of a family must do, as classes to subclass: give the fixture, inherit the tests.

They run under pytest with pytest-asyncio in auto mode, and use real threads and event loops.
"""

import pytest

_MODULES = "bus channel directory directory_rows runner store threads".split()
_LAWS = "delegations effects events grants large limits records".split()
for _module in (*_MODULES, *(f"store_{laws}" for laws in _LAWS)):
    pytest.register_assert_rewrite(f"{__name__}.{_module}")

from toolgate.testing.conformance.bus import BusConformance  # noqa: E402  # asserts are rewritten at import
from toolgate.testing.conformance.channel import ChannelConformance  # noqa: E402
from toolgate.testing.conformance.directory import DirectoryConformance  # noqa: E402
from toolgate.testing.conformance.directory_rows import DirectoryRowsConformance  # noqa: E402
from toolgate.testing.conformance.runner import RunnerConformance  # noqa: E402
from toolgate.testing.conformance.store import StoreConformance  # noqa: E402
from toolgate.testing.conformance.threads import ThreadsConformance  # noqa: E402

__all__ = [
    "BusConformance",
    "ChannelConformance",
    "DirectoryConformance",
    "DirectoryRowsConformance",
    "RunnerConformance",
    "StoreConformance",
    "ThreadsConformance",
]
