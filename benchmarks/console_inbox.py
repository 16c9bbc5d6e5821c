"""The console's inbox with 300 questions, against the least a page can do with the same stream.

Both begin when the page asks for the stream and end when everything it told is painted: ours 300 rows and a card, the
bare page 300 list items of one text node each. Then questions are decided while the page is looked at, and the time
between its frames is taken. Prints one JSON line. Needs Chromium; run with `python -m benchmarks.console_inbox`.
"""

import argparse
import asyncio
import json
import shutil
import statistics
import tempfile
from pathlib import Path
from typing import Any

import httpx2
from benchmarks.server_host import PROJECT, hosted
from playwright.async_api import Browser, Page, async_playwright

COOKIE = "toolgate_session"
FLAGS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update", "--disable-dev-shm-usage",
]  # fmt: skip

WATCH = """
window.fetch = ((real) => (...given) => {
  if (String(given[0]).endsWith("/inbox")) window.began = performance.now();
  return real(...given);
})(window.fetch);
addEventListener("DOMContentLoaded", () => {
  const watcher = new MutationObserver(() => {
    if (document.querySelectorAll("SELECTOR").length < COUNT) return;
    watcher.disconnect();
    requestAnimationFrame(() => requestAnimationFrame(() => { window.took = performance.now() - window.began; }));
  });
  watcher.observe(document.documentElement, { childList: true, subtree: true });
});
"""
KEEP_KEY = """{
  const opening = indexedDB.open("toolgate", 1);
  opening.onupgradeneeded = () => opening.result.createObjectStore("keys");
  opening.onsuccess = () => opening.result.transaction("keys", "readwrite").objectStore("keys").put("KEY", "");
}"""
BARE = """async ([path, key]) => {
  const list = document.body.appendChild(document.createElement("ul"));
  const response = await fetch(path, { headers: { Accept: "text/event-stream", "X-Toolgate-Key": key } });
  const chunks = response.body.getReader();
  const decoder = new TextDecoder();
  let rest = "";
  for (;;) {
    const { done, value } = await chunks.read();
    if (done) return;
    const blocks = (rest + decoder.decode(value, { stream: true })).split("\\n\\n");
    rest = blocks.pop();
    for (const block of blocks) {
      const data = block.split("\\ndata: ")[1];
      if (!block.includes("event: inbox.card")) { if (block.includes("stream.ready")) return; continue; }
      const item = list.appendChild(document.createElement("li"));
      item.appendChild(document.createTextNode(JSON.parse(data).summary));
    }
  }
}"""
FRAMES = """() => {
  window.gaps = [];
  let last = performance.now();
  const step = (now) => { window.gaps.push(now - last); last = now; requestAnimationFrame(step); };
  requestAnimationFrame(step);
}"""


async def opened(browser: Browser, url: str, session: tuple[str, str], path: str, selector: str, count: int) -> Page:
    """A fresh page that notes how long its list takes."""
    context = await browser.new_context(viewport={"width": 1360, "height": 860})
    cookie, key = session
    await context.add_cookies([{"name": COOKIE, "value": cookie, "url": url}])
    await context.add_init_script(KEEP_KEY.replace("KEY", key))
    await context.add_init_script(WATCH.replace("SELECTOR", selector).replace("COUNT", str(count)))
    page = await context.new_page()
    await page.goto(url + path)
    return page


async def took(page: Page) -> float:
    """Milliseconds until everything was painted."""
    async with asyncio.timeout(60):
        while not (found := await page.evaluate("window.took ?? 0")):  # noqa: ASYNC110  # it is in the browser
            await asyncio.sleep(0.02)
    return float(found)


async def measure(rounds: int, count: int, told: dict[str, Any], browser: Browser) -> dict[str, Any]:
    url, headers = f"http://127.0.0.1:{told['port']}", {"Authorization": f"Bearer {told['token']}"}
    bare: list[float] = []
    ours: list[float] = []
    async with httpx2.AsyncClient(base_url=url, headers=headers, timeout=30) as client:
        begun = await client.post("/session", json={})
        session = begun.cookies[COOKIE], begun.json()["key"]
        for _ in range(rounds + 1):
            page = await opened(browser, url, session, "/login", "li", count)
            await page.evaluate(BARE, [f"/my/projects/{PROJECT}/inbox", session[1]])
            bare.append(await took(page))
            await page.context.close()
            page = await opened(browser, url, session, f"/?project={PROJECT}", ".row", count)
            ours.append(await took(page))
            await page.context.close()
        page = await opened(browser, url, session, f"/?project={PROJECT}", ".row", count)
        await took(page)
        await page.evaluate(FRAMES)
        for approval in told["approvals"][: count // 3]:
            await client.post(f"/my/projects/{PROJECT}/approvals/{approval}/reject", json={})
        gaps = sorted(await page.evaluate("window.gaps"))
        await page.context.close()
    before, after = statistics.median(bare[1:]), statistics.median(ours[1:])  # the first warms caches up
    return {
        "bare_ms": before,
        "ours_ms": after,
        "ratio": after / before,
        "frame_p50_ms": gaps[len(gaps) // 2],
        "frame_p95_ms": gaps[int(len(gaps) * 0.95)],
        "frame_max_ms": gaps[-1],
        "frames": len(gaps),
    }


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--count", type=int, default=300)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        async with hosted("ours-inbox", Path(folder), count=options.count) as told, async_playwright() as playwright:
            browser = await playwright.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS)
            print(json.dumps(await measure(options.rounds, options.count, told, browser)))
            await browser.close()


if __name__ == "__main__":
    asyncio.run(main())
