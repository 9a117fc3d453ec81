"""The tests of the page about tests pass, and so do those of the examples."""

from __future__ import annotations

import inspect
import os
import subprocess
import sys
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tests.docs.pages import ROOT, Block, blocks

EXAMPLES = ("echo", "fastapi_embed", "fastapi_login", "django_login")
WHOLE = {(ROOT / "examples" / name / "test_app.py").read_text() for name in EXAMPLES}
OWN = [
    block
    for page in ("testing.md", "webhooks.md")
    for block in blocks("python", page=page)
    if block.code not in WHOLE and "async def test_" in block.code
]


@pytest.mark.parametrize("block", OWN, ids=str)
async def test_the_tests_of_a_block_pass(block: Block, arp_session: Callable[..., Any]) -> None:
    names: dict[str, Any] = {"__name__": "docs"}
    exec(compile(block.code, str(block), "exec", dont_inherit=True), names)
    tests = [one for name, one in names.items() if name.startswith("test_")]
    assert tests
    for test in tests:
        given = (
            {"arp_session": arp_session} if "arp_session" in str(inspect.signature(test)) else {}
        )
        outcome = test(**given)
        if isinstance(outcome, Awaitable):
            await outcome


@pytest.mark.parametrize("example", EXAMPLES)
def test_the_tests_of_an_example_pass_in_its_folder(example: str) -> None:
    folder = ROOT / "examples" / example
    command = [sys.executable, "-m", "pytest", "-q", "-c", os.devnull, "--rootdir", str(folder)]
    command += ["-p", "pytest_asyncio.plugin", "-p", "arp.testbed.pytest_plugin"]
    command += ["-p", "no:cacheprovider", "-W", "error"]
    command += ["-o", "asyncio_default_fixture_loop_scope=function"]
    # Without the plugins that only this repository has, which take longer to load than these tests.
    environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    done = subprocess.run(
        command,
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert " passed" in done.stdout
