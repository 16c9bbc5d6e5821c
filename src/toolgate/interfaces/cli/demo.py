"""`toolgate demo`: watch an agent ask, decide, undo and verify, in a minute."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from toolgate.errors import ToolgateError

if TYPE_CHECKING:
    from toolgate.interfaces.client.client import Client
    from toolgate.interfaces.demo.deciding import Decider
    from toolgate.interfaces.demo.narrator import Narrator
    from toolgate.interfaces.demo.scene import Scene

FAILED = "The demo did not go as it should:"


def demo(
    auto: Annotated[bool, typer.Option("--auto", help="Decide without asking you, check every step, and end.")] = False,
    terminal: Annotated[bool, typer.Option("--terminal", help="Answer in this terminal, without a browser.")] = False,
    no_open: Annotated[bool, typer.Option("--no-open", help="Do not open a browser; print the address.")] = False,
    port: Annotated[
        int, typer.Option(min=0, max=65535, show_default=False, help="Port of the server; a free one by default.")
    ] = 0,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object per line, for each event.")] = False,
) -> None:
    """Try it: a server, a runner and an agent in a temporary folder.

    The agent edits a file, runs tests, fetches a page, writes to customers and deletes; you approve, edit, reject
    and undo. Nothing leaves this machine, and nothing is left when it ends. Exit code 1 if a step failed.
    """
    if auto and terminal:
        raise typer.BadParameter("--auto decides by itself and --terminal asks you; give one of them.")
    from toolgate.interfaces.demo.narrator import JsonLines, Terminal

    narrator: Narrator = JsonLines() if json else Terminal()
    try:
        is_good = _play(narrator, auto=auto, terminal=terminal, opens=not (no_open or auto or terminal), port=port)
    except (KeyboardInterrupt, asyncio.CancelledError):
        typer.echo("\ntoolgate: the demo was ended early; nothing is left of it.", err=True)
        raise typer.Exit(130) from None
    if not is_good:
        raise typer.Exit(1)


def _play(narrator: Narrator, *, auto: bool, terminal: bool, opens: bool, port: int) -> bool:
    """Play it; say whether every step was good. What cut it short is told at its end."""
    from toolgate.interfaces.demo.checking import Failure

    why = ""
    try:
        return asyncio.run(_demo(narrator, auto=auto, terminal=terminal, opens=opens, port=port))
    except* EOFError:
        why = "There is nobody at the keyboard; try --auto."
    except* ToolgateError as errors:
        why = str(_first(errors))
    narrator.end(FAILED, failed=[Failure(step="the demo", why=why)])
    return False


def _first(errors: BaseException) -> BaseException:
    return _first(errors.exceptions[0]) if isinstance(errors, BaseExceptionGroup) else errors


async def _demo(narrator: Narrator, *, auto: bool, terminal: bool, opens: bool, port: int) -> bool:
    from toolgate.interfaces.client.client import Client
    from toolgate.interfaces.demo.checking import broken
    from toolgate.interfaces.demo.play import BY_ITSELF_S, RUN_S, Play
    from toolgate.interfaces.demo.scene import open_scene
    from toolgate.interfaces.demo.story import PROJECT

    task = asyncio.current_task()
    assert task is not None
    for number in (signal.SIGTERM, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(number, task.cancel)
    narrator.chapter(1, "A shop on the eve of a release, in a folder of its own.")
    async with (
        open_scene(narrator.note, port=port) as scene,
        Client(scene.url, token=scene.token, project=PROJECT) as client,
    ):
        if not auto and not terminal:
            await _show_console(scene, narrator, opens=opens)
        decider = _decider(client, narrator, auto=auto, terminal=terminal)
        play = Play(scene, client, narrator, decider)
        await play.perform(within_s=BY_ITSELF_S if auto else RUN_S)
        await decider.leave()
        record = play.record
        failed = play.failures() if auto else broken(record)
        narrator.end(
            FAILED if failed else "That was it. The same with your own tools: docs/tutorials/first-governed-call.md",
            failed=failed,
            answers=record.answers,
            undone=record.undone,
            verified=record.verified,
        )
        return not failed


def _decider(client: Client, narrator: Narrator, *, auto: bool, terminal: bool) -> Decider:
    from toolgate.interfaces.demo.deciding import AtTheTerminal, ByItself, InTheBrowser, Keyboard

    if auto:
        return ByItself(client, narrator)
    return AtTheTerminal(client, narrator, Keyboard()) if terminal else InTheBrowser(narrator, Keyboard())


async def _show_console(scene: Scene, narrator: Narrator, *, opens: bool) -> None:
    """Tell where the console is, with a link that signs in once, and open it where there is a screen."""
    link = await scene.login_link()
    narrator.note("console", link)
    if opens and sys.stdout.isatty() and (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")):
        import webbrowser

        await asyncio.to_thread(webbrowser.open, link)
