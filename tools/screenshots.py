"""Make the pictures of the README: one session, in a browser and in a terminal.

    python -m tools.screenshots

It needs Chromium and tmux, like the tests of the page and of the terminal. The pictures are real:
the data explorer is served, both screens join one session, an input is sent in the browser, and the
pictures are taken when both show the question that follows.
"""

from __future__ import annotations

import html
import io
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright
from rich.cells import cell_len
from rich.console import Console
from rich.style import Style
from rich.terminal_theme import TerminalTheme
from rich.text import Text

ROOT = Path(__file__).resolve().parent.parent
IMAGES = ROOT / "docs" / "images"
SESSION = "demo"
QUESTION = "Show the average temperature by month"
ASKED = "Write the file"
"""Text on the button and in the terminal while the agent waits for an answer."""
PAGE = {"width": 1040, "height": 1600}
COLUMNS, ROWS = 92, 54
PATIENCE_S = 20.0
NORMAL = "181a1f e06c75 7ec380 deb86f 68a4ed c684de 58bec8 dde0e5"
BRIGHT = "808794 f0828a 96d698 f0cd8c 86bafa d89cee 74d4dd ffffff"
"""The eight colours of a terminal, normal and bright."""
FRAME = """<!doctype html><meta charset="utf-8"><style>
body {{ margin: 0; width: max-content; background: #181a1f; color: #dde0e5; padding: 18px 22px;
  font: 14px/1.3 "DejaVu Sans Mono", Menlo, monospace }}
pre {{ margin: 0; font: inherit }}
i {{ display: inline-block; font-style: normal; width: 1ch; text-align: center }}
</style><pre>{}</pre>"""


def rgb(colours: str) -> list[tuple[int, int, int]]:
    """Return colours from hexadecimal numbers that are separated by spaces."""
    return [(word[0], word[1], word[2]) for word in map(bytes.fromhex, colours.split())]


THEME = TerminalTheme(rgb(NORMAL)[0], rgb(NORMAL)[-1], rgb(NORMAL), rgb(BRIGHT))


def main() -> int:
    """Write `docs/images/browser.png` and `docs/images/terminal.png`."""
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if chromium is None or shutil.which("tmux") is None:
        print("screenshots: needs chromium and tmux on PATH", file=sys.stderr)
        return 1
    IMAGES.mkdir(parents=True, exist_ok=True)
    with served() as address, terminal(address) as tmux, sync_playwright() as runner:
        browser = runner.chromium.launch(executable_path=chromium)
        wait_until(lambda: SESSION in screen_of(tmux))
        page = browser.new_page(viewport=PAGE)  # type: ignore[arg-type]  # a TypedDict by its keys
        ask(page, address)
        wait_until(lambda: ASKED in screen_of(tmux))
        page.wait_for_timeout(1500)  # fades are over, and the spinner stands still
        page.screenshot(path=IMAGES / "browser.png")
        picture(browser, screen_of(tmux, "-e"), IMAGES / "terminal.png")
        browser.close()
    for path in sorted(IMAGES.glob("*.png")):
        print(f"{path.relative_to(ROOT)}: {path.stat().st_size >> 10} KiB")
    return 0


@contextmanager
def served(environment: Mapping[str, str] | None = None) -> Iterator[str]:
    """Serve the explorer on a free port, and yield its address.

    Args:
        environment: Environment variables, which override the default ones.
    """
    command = [sys.executable, "-m", "arp.cli", "serve", "examples/explorer/app.py"]
    command += ["--port", "0", "--ledger", "memory:"]
    env = {**os.environ, **(environment or {})}
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, env=env) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().removeprefix("ARP on ").strip()
        finally:
            process.terminate()


@contextmanager
def terminal(address: str, columns: int = COLUMNS, rows: int = ROWS) -> Iterator[list[str]]:
    """Run `arp connect` in a separate terminal; return the tmux command that controls it."""
    with tempfile.TemporaryDirectory() as folder:
        tmux = ["tmux", "-f", "/dev/null", "-S", str(Path(folder) / "socket")]
        size = ["-x", str(columns), "-y", str(rows)]
        connect = [sys.executable, "-m", "arp.cli", "connect", address, "--session", SESSION]
        surroundings = ["env", f"HOME={folder}", "LC_ALL=C.UTF-8", "COLORTERM=truecolor"]
        subprocess.run(
            [*tmux, "new-session", "-d", *size, *surroundings, *connect], check=True, cwd=ROOT
        )
        try:
            yield tmux
        finally:
            subprocess.run([*tmux, "kill-server"], check=False)


def screen_of(tmux: list[str], *flags: str) -> str:
    """Return the content of a terminal; with `-e` also its colours."""
    command = [*tmux, "capture-pane", "-p", *flags]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def ask(page: Page, address: str) -> None:
    """Send the input in the browser, and wait for the question that follows."""
    page.goto(f"{address}/?session={SESSION}")
    page.get_by_text("Connected", exact=True).wait_for()
    box = page.get_by_role("textbox", name="Message")
    box.fill(QUESTION)
    box.press("Enter")
    page.get_by_role("button", name=ASKED).wait_for()


def picture(browser: Browser, screen: str, path: Path) -> None:
    """Write the content of a terminal as an image."""
    page = browser.new_page(viewport={"width": 900, "height": 400})
    page.set_content(FRAME.format(lines_of(screen)))
    page.locator("body").screenshot(path=path)


def lines_of(screen: str) -> str:
    """Return the content of a terminal, with its colours, as lines of HTML."""
    console = Console(record=True, width=COLUMNS, file=io.StringIO())
    return "\n".join(
        as_html(Text.from_ansi(line), console) for line in screen.rstrip().splitlines()
    )


def as_html(line: Text, console: Console) -> str:
    """Return a line with its styles; characters that fonts may lack get a cell of fixed width."""
    out: list[str] = []
    for segment in line.render(console):
        style = segment.style if isinstance(segment.style, Style) else Style()
        out.append(f'<span style="{style.get_html_style(THEME)}">{cells(segment.text)}</span>')
    return "".join(out)


def cells(text: str) -> str:
    """Escape a text; each non-ASCII character gets the width that it has in a terminal."""
    return re.sub(r"[^\x00-\x7f]", one_cell, html.escape(text))


def one_cell(found: re.Match[str]) -> str:
    """Return one character in a box of its width."""
    width = cell_len(found[0])
    return f'<i style="width:{width}ch">{found[0]}</i>'


def wait_until(done: Callable[[], bool]) -> None:
    """Wait for a condition, with a time limit."""
    deadline = time.monotonic() + PATIENCE_S
    while not done():
        if time.monotonic() > deadline:
            raise TimeoutError("the terminal does not show what it should")
        time.sleep(0.1)


if __name__ == "__main__":
    sys.exit(main())
