"""Takes the pictures of the README anew: plays the demo and photographs the console in Debian's Chromium.

`.venv/bin/python tools/take_pictures.py`
"""

from __future__ import annotations

import io
import json
import shutil
import subprocess
import sys
from pathlib import Path

from PIL import Image
from playwright.sync_api import Page, sync_playwright

IMAGES = Path(__file__).resolve().parents[1] / "docs" / "images"
SIZE = {"width": 1280, "height": 760}


def keep(page: Page, name: str) -> None:
    """Photograph a page, with no more colours than it needs."""
    picture = Image.open(io.BytesIO(page.screenshot())).convert("RGB").quantize(128)
    IMAGES.mkdir(exist_ok=True)
    picture.save(IMAGES / f"{name}.png", optimize=True)
    print(f"{name}.png: {(IMAGES / f'{name}.png').stat().st_size:,} bytes")


def questions(demo: subprocess.Popen[str]) -> str:
    """Return the login link once two questions wait."""
    assert demo.stdout is not None
    link, asked = "", 0
    for line in demo.stdout:
        told = json.loads(line)
        if told["event"] == "note" and told["what"] == "console":
            link = told["text"]
        asked += told["event"] == "question"
        if asked == 2:
            return link
    raise SystemExit("the demo ended early")


def main() -> None:
    command = [sys.executable, "-m", "toolgate", "demo", "--no-open", "--json"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as demo:
        try:
            with sync_playwright() as playwright:
                browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
                page = browser.new_page(viewport=SIZE)  # type: ignore[arg-type]  # a size
                page.goto(questions(demo))
                page.get_by_text("Open it to decide").click()
                page.get_by_placeholder("Reason").fill("The diff is right.")
                page.get_by_role("heading", name="2 waiting").wait_for()
                keep(page, "inbox")
                browser.close()
        finally:
            demo.terminate()


if __name__ == "__main__":
    main()
