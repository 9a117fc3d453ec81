"""Record the first minute of the demo as an animated picture: one session, browser and terminal.

    make pictures

Writes `docs/images/demo.webp`. It needs Chromium and tmux, like `tools.screenshots`. The recording
is real: the data explorer is served, a browser and a terminal join one session, the question is
asked in the browser and answered in the terminal.

A machine cannot take pictures of two screens as fast as the answer streams. So the agent streams
`SLOWER` times more slowly during the recording, and the picture is played faster by the same
factor. Its pace is the same on every machine.
"""

from __future__ import annotations

import argparse
import io
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from PIL import Image
from playwright.sync_api import Browser, Page, ViewportSize, sync_playwright

from tools.screenshots import (
    ASKED,
    IMAGES,
    PATIENCE_S,
    QUESTION,
    SESSION,
    lines_of,
    screen_of,
    served,
    terminal,
    wait_until,
)

TARGET = IMAGES / "demo.webp"
PAGE = ViewportSize(width=600, height=760)
TERMINAL = ViewportSize(width=520, height=760)
"""Sizes of the two halves in pixels, side by side."""
COLUMNS, ROWS = 60, 39
WORD_MS = 60
"""Milliseconds per word in the picture, like `EXPLORER_PACE_MS`. The demo itself is twice as fast;
here a viewer has two screens to watch."""
SLOWER = 5
ANSWER = "y"
ANSWERED = "Exported"
"""Text on the card that both screens show when the file is written."""

NEWEST = "Jump to latest"

KEY_MS = 45
LOOK_MS = 1200
"""Time in milliseconds for which something new is shown before the next action."""
END_MS = 4500
"""Pause in milliseconds before the picture repeats."""
LONGEST_MS = 400
"""Longest time of a frame while an answer streams; longer waits for the machine are cut."""
QUALITY = 62
FRAME = """<!doctype html><meta charset="utf-8"><style>
body {{ margin: 0; background: #181a1f; color: #dde0e5; padding: 14px 16px; overflow: hidden;
  font: 13.2px/1.42 "DejaVu Sans Mono", Menlo, monospace }}
pre {{ margin: 0; font: inherit }}
i {{ display: inline-block; font-style: normal; width: 1ch; text-align: center }}
</style><pre>{}</pre>"""
SECONDS = re.compile(r"\d+(?= s · Ctrl-C stops)")
"""Pattern of the running time of a turn in the terminal."""
BAR_HEIGHT = 30
BAR = """<!doctype html><meta charset="utf-8"><style>
body {{ margin: 0; display: flex; background: #2b2f38; color: #dde0e5; overflow: hidden;
  font: 600 13px/30px "DejaVu Sans", system-ui, sans-serif }}
span {{ padding: 0 16px; box-sizing: border-box }}
code {{ font: 13px "DejaVu Sans Mono", Menlo, monospace; color: #9aa2b1 }}
</style><span style="width: {}px">Browser</span><span>Terminal <code>arp connect</code></span>"""
"""Titles above the two screens."""


@dataclass
class Film:
    """Frames with their durations in milliseconds; equal neighbours are merged."""

    frames: list[Image.Image] = field(default_factory=list)
    durations_ms: list[int] = field(default_factory=list)

    def add(self, frame: Image.Image, duration_ms: float) -> None:
        """Add a frame; if it equals the last one, extend the time of that one."""
        if self.frames and self.frames[-1].tobytes() == frame.tobytes():
            self.durations_ms[-1] += round(duration_ms)
        else:
            self.frames.append(frame)
            self.durations_ms.append(max(round(duration_ms), 20))

    def write(self, path: Path) -> None:
        """Write an animated WebP that repeats forever."""
        first, *rest = self.frames
        first.save(
            path,
            save_all=True,
            append_images=rest,
            duration=self.durations_ms,
            loop=0,
            quality=QUALITY,
            method=4,
        )


class Stage:
    """The two screens side by side.

    Args:
        browser: Browser that draws both.
        address: Address of the server.
        tmux: Command that controls the terminal.
    """

    def __init__(self, browser: Browser, address: str, tmux: list[str]) -> None:
        self.page = browser.new_page(viewport=PAGE, color_scheme="light")
        self.film = Film()
        self._tmux = tmux
        self._drawn = browser.new_page(viewport=TERMINAL)
        self._terminal: tuple[str, Image.Image] | None = None
        self._drawn.set_viewport_size(
            ViewportSize(width=PAGE["width"] + TERMINAL["width"], height=BAR_HEIGHT)
        )
        self._drawn.set_content(BAR.format(PAGE["width"]))
        self._bar = _picture(self._drawn)
        self._drawn.set_viewport_size(TERMINAL)
        self.page.goto(f"{address}/?session={SESSION}")
        self.page.get_by_text("Connected", exact=True).wait_for()

    def frame(self) -> Image.Image:
        """Take a picture of both screens."""
        whole = Image.new("RGB", (self._bar.width, BAR_HEIGHT + PAGE["height"]))
        whole.paste(self._bar, (0, 0))
        whole.paste(_picture(self.page), (0, BAR_HEIGHT))
        screen = screen_of(self._tmux, "-e")
        if self._terminal is None or self._terminal[0] != screen:
            self._drawn.set_content(FRAME.format(lines_of(SECONDS.sub(_played, screen))))
            self._terminal = (screen, _picture(self._drawn))
        whole.paste(self._terminal[1], (PAGE["width"], BAR_HEIGHT))
        return whole

    def hold(self, duration_ms: float) -> None:
        """Show the current frame for a while."""
        self.film.add(self.frame(), duration_ms)

    def type(self, text: str, step: int, press: Callable[[str], None]) -> None:
        """Type a text, a few keys per frame."""
        for start in range(0, len(text), step):
            press(text[start : start + step])
            self.hold(KEY_MS * step)

    def press_in_terminal(self, *keys: str) -> None:
        """Press keys in the terminal, by tmux's names or as text."""
        subprocess.run([*self._tmux, "send-keys", *keys], check=True)

    def go_to_the_end(self) -> None:
        """Press the button that scrolls to the newest turn."""
        button = self.page.get_by_role("button", name=NEWEST)
        if button.is_visible():
            button.click()
            self.page.wait_for_timeout(600)

    def until(self, is_done: Callable[[], bool]) -> None:
        """Take pictures until a condition holds; their times are divided by `SLOWER`."""
        deadline, since = time.monotonic() + SLOWER * PATIENCE_S, time.monotonic()
        is_last = False
        while not is_last:
            is_last = is_done()
            frame = self.frame()
            now = time.monotonic()
            self.film.add(frame, min((now - since) * 1000 / SLOWER, LONGEST_MS))
            since = now
            if now > deadline:
                raise TimeoutError("the demo does not show what it should")


def _played(seconds: re.Match[str]) -> str:
    """Return the seconds of the picture for a number of recorded seconds."""
    return str(int(seconds[0]) // SLOWER)


def _picture(page: Page) -> Image.Image:
    """Take a picture of a page without a blinking cursor."""
    return Image.open(io.BytesIO(page.screenshot(caret="initial"))).convert("RGB")


def record(browser: Browser, address: str, tmux: list[str], step: int) -> Film:
    """Play the first minute and return the recording.

    Args:
        browser: Browser that draws both screens.
        address: Address of the server.
        tmux: Command that controls the terminal.
        step: Keys per frame where text is typed.
    """
    wait_until(lambda: SESSION in screen_of(tmux))
    stage = Stage(browser, address, tmux)
    stage.page.wait_for_timeout(500)  # what fades in has faded in
    stage.hold(LOOK_MS)
    box = stage.page.get_by_role("textbox", name="Message")
    box.click()
    stage.type(QUESTION, step, box.press_sequentially)
    stage.hold(KEY_MS * 8)
    box.press("Enter")
    stage.until(
        lambda: (
            stage.page.get_by_role("button", name=ASKED).is_visible() and ASKED in screen_of(tmux)
        )
    )
    stage.page.wait_for_timeout(600)
    stage.hold(LOOK_MS)
    stage.go_to_the_end()
    stage.hold(2 * LOOK_MS)
    asked = screen_of(tmux)
    stage.press_in_terminal("-l", ANSWER)
    wait_until(lambda: screen_of(tmux) != asked)
    stage.hold(LOOK_MS / 2)
    stage.press_in_terminal("Enter")
    stage.until(
        lambda: (
            stage.page.get_by_text(ANSWERED, exact=True).is_visible()
            and ANSWERED in screen_of(tmux)
        )
    )
    stage.page.wait_for_timeout(600)
    stage.hold(END_MS)
    return stage.film


def main(arguments: list[str] | None = None) -> int:
    """Write the picture; return the exit code."""
    parser = argparse.ArgumentParser(
        prog="record_demo", description="Records docs/images/demo.webp."
    )
    parser.add_argument("--to", type=Path, default=TARGET, help="The file to write.")
    parser.add_argument("--quick", action="store_true", help="Fewer frames, for a test.")
    options = parser.parse_args(arguments)
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if chromium is None or shutil.which("tmux") is None:
        print("record_demo: needs chromium and tmux on PATH", file=sys.stderr)
        return 1
    pace_ms = WORD_MS * (1 if options.quick else SLOWER)
    with tempfile.TemporaryDirectory() as folder:
        environment = {"EXPLORER_PACE_MS": str(pace_ms), "EXPLORER_EXPORT": f"{folder}/exports"}
        with (
            served(environment) as address,
            terminal(address, COLUMNS, ROWS) as tmux,
            sync_playwright() as runner,
        ):
            browser = runner.chromium.launch(executable_path=chromium)
            film = record(browser, address, tmux, step=20 if options.quick else 2)
            browser.close()
    film.write(options.to)
    seconds, size = sum(film.durations_ms) / 1000, options.to.stat().st_size >> 10
    print(f"{options.to.name}: {len(film.frames)} frames, {seconds:.1f} s, {size} KiB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
