"""Fixtures for pytest, available as soon as the package is installed.

- `arp_session`: `user = await arp_session(app)`, as `arp.testing.session`.
- `arp_serve`: `served = await arp_serve(app)`, as `arp.testing.serve`.
- `arp_snapshot`: `arp_snapshot(turn)` compares the output of a turn with a file next to the test;
  `pytest --arp-update` writes the files.

Theory of operation. pytest imports this module in every run on a machine with the package, so it
imports only pytest; the fixtures import what they need on first use.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from difflib import ndiff
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
"""Name of the folder with snapshots, next to the test file."""


def _async_fixture(function: Callable[..., Any]) -> Any:
    """Return a fixture for an asynchronous generator, for pytest-asyncio or for anyio."""
    if find_spec("pytest_asyncio") is not None:
        import pytest_asyncio

        return pytest_asyncio.fixture(function)
    return pytest.fixture(function)


@_async_fixture
async def arp_session() -> AsyncIterator[Callable[..., Awaitable[VirtualRenderer]]]:
    """Serve apps until the test ends; return a function that gives a renderer of an app.

    `user = await arp_session(app)`.
    """
    from arp.testbed.served_app import session

    async with AsyncExitStack() as stack:

        async def start(app: App, **options: Any) -> VirtualRenderer:
            return await stack.enter_async_context(session(app, **options))

        yield start


@_async_fixture
async def arp_serve() -> AsyncIterator[Callable[..., Awaitable[ServedApp]]]:
    """Serve apps until the test ends; return a function that gives a `ServedApp`.

    `served = await arp_serve(app)`.
    """
    from arp.testbed.served_app import serve

    async with AsyncExitStack() as stack:

        async def start(app: App, **options: Any) -> ServedApp:
            return await stack.enter_async_context(serve(app, **options))

        yield start


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option that writes snapshots."""
    group = parser.getgroup("arp", "tests of ARP agents")
    group.addoption(
        "--arp-update", action="store_true", help="write the files that arp_snapshot compares with"
    )


@pytest.fixture
def arp_snapshot(request: pytest.FixtureRequest) -> Callable[..., None]:
    """Compare the output of a turn, or any text, with a file: `arp_snapshot(turn)`.

    The file is `snapshots/TEST.txt` in the directory of the test file, and `TEST-2.txt` for a
    second comparison in the same test. A missing file is written, and the test fails once.
    """
    name = re.sub(r"[^\w-]+", "_", request.node.name).strip("_")
    folder = Path(request.node.path).parent / FOLDER
    count = 0

    def check(output: RenderedTurn | str) -> None:
        nonlocal count
        count += 1
        text = (output if isinstance(output, str) else output.snapshot()).rstrip("\n") + "\n"
        file = folder / f"{name}{'' if count == 1 else f'-{count}'}.txt"
        is_new = not file.exists()
        if is_new or request.config.getoption("--arp-update"):
            folder.mkdir(exist_ok=True)
            file.write_text(text, encoding="utf-8")
        if is_new and not request.config.getoption("--arp-update"):
            pytest.fail(f"{file} was missing and is written now; check it and commit it")
        expected = file.read_text(encoding="utf-8")
        if text != expected:
            lines = ndiff(expected.splitlines(), text.splitlines())
            changes = "\n".join(line for line in lines if not line.startswith("?"))
            pytest.fail(
                f"{file} has another output (-) than now (+):\n{changes}\n"
                "pytest --arp-update writes the file again",
                pytrace=False,
            )

    return check
