"""One server and one browser for each worker; tests of the console share its event loop with them."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from playwright.async_api import Browser, async_playwright, expect
from tests.console.scene import ConsoleServer, Scene

from toolgate.testing.patience import PATIENCE_S

expect.set_options(timeout=PATIENCE_S * 1000)  # a slow machine is not a defect
CHROMIUM = shutil.which("chromium")
FLAGS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
]  # fmt: skip


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "/tests/console/" in str(item.path):
            item.add_marker(pytest.mark.asyncio(loop_scope="session"), append=False)
            if CHROMIUM is None:
                item.add_marker(pytest.mark.skip(reason="chromium is not installed; run tools/components.py as root"))


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def browser() -> AsyncIterator[Browser]:
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        await browser.close()


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def console_server(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[ConsoleServer]:
    server = ConsoleServer(tmp_path_factory.mktemp("console"))
    await server.prepare()
    await server.start()
    yield server
    await server.stop()


@pytest_asyncio.fixture(loop_scope="session")
async def scene(console_server: ConsoleServer, browser: Browser) -> AsyncIterator[Scene]:
    scene = Scene(console_server, browser)
    yield scene
    await scene.close()
