"""Fixtures for pytest, which has them as soon as the package is installed.

- `arp_session`: `user = await arp_session(app)`, as `arp.testing.session`.
- `arp_serve`: `served = await arp_serve(app)`, as `arp.testing.serve`.
- `arp_snapshot`: `arp_snapshot(turn)` compares what shows with a file beside the test;
  `pytest --arp-update` writes the files.

Theory of operation. pytest imports this in every run of whoever has the package, so it imports
nothing but pytest; what the fixtures need is loaded when a test asks for one.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from arp.app import App
    from arp.testbed.rendered_turn import RenderedTurn
    from arp.testbed.served_app import ServedApp
    from arp.testbed.virtual_renderer import VirtualRenderer

FOLDER = "snapshots"
"""Beside the file of the test."""


def _async_fixture(function: Callable[..., Any]) -> Any:
    """Make a fixture of an asynchronous generator, for pytest-asyncio or for anyio."""
    if find_spec("pytest_asyncio") is not None:
        import pytest_asyncio

        return pytest_asyncio.fixture(function)
    return pytest.fixture(function)


@_async_fixture
async def arp_session() -> AsyncIterator[Callable[..., Awaitable[VirtualRenderer]]]:
    """Serve apps until the test ends, each with one renderer, which is what awaiting returns."""
    from arp.testbed.served_app import session

    async with AsyncExitStack() as stack:

        async def begin(app: App, **options: Any) -> VirtualRenderer:
            return await stack.enter_async_context(session(app, **options))

        yield begin


@_async_fixture
async def arp_serve() -> AsyncIterator[Callable[..., Awaitable[ServedApp]]]:
    """Serve apps until the test ends; awaiting returns a `ServedApp`."""
    from arp.testbed.served_app import serve

    async with AsyncExitStack() as stack:

        async def begin(app: App, **options: Any) -> ServedApp:
            return await stack.enter_async_context(serve(app, **options))

        yield begin


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option that writes snapshots."""
    group = parser.getgroup("arp", "tests of ARP agents")
    group.addoption(
        "--arp-update", action="store_true", help="write the files that arp_snapshot compares with"
    )


@pytest.fixture
def arp_snapshot(request: pytest.FixtureRequest) -> Callable[..., None]:
    """Compare what a turn shows with a file: `arp_snapshot(turn)`, or with any text.

    The file is `snapshots/TEST.txt` beside the file of the test, and `TEST-2.txt` for a second
    comparison of one test. A file that is missing is written, and the test fails once.
    """
    name = re.sub(r"[^\w-]+", "_", request.node.name).strip("_")
    folder = Path(request.node.path).parent / FOLDER
    taken = 0

    def check(shown: RenderedTurn | str) -> None:
        nonlocal taken
        taken += 1
        text = (shown if isinstance(shown, str) else shown.snapshot()).rstrip("\n") + "\n"
        file = folder / f"{name}{'' if taken == 1 else f'-{taken}'}.txt"
        is_new = not file.exists()
        if is_new or request.config.getoption("--arp-update"):
            folder.mkdir(exist_ok=True)
            file.write_text(text, encoding="utf-8")
        if is_new and not request.config.getoption("--arp-update"):
            pytest.fail(f"{file} was missing and is written now; look at it and commit it")
        expected = file.read_text(encoding="utf-8")
        if text != expected:
            assert text == expected, f"pytest --arp-update writes {file} again"

    return check
