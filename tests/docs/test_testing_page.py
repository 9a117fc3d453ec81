"""The tests of the page about tests pass, and so do those of the examples."""

from __future__ import annotations

import ast
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


IN_ITS_FOLDER = """
import os, sys, pytest
for folder in sys.argv[1:]:
    for name in ("app", "test_app"):  # each folder has its own
        sys.modules.pop(name, None)
    os.chdir(folder)
    options = ["-q", "-c", os.devnull, "-p", "no:cacheprovider", "--rootdir", folder, "-W", "error"]
    options += ["-o", "asyncio_default_fixture_loop_scope=function"]
    options += ["-p", "pytest_asyncio.plugin", "-p", "arp.testbed.pytest_plugin"]
    if pytest.main(options):
        sys.exit(folder)
"""
"""`cd FOLDER && pytest` for several folders; one process, since each would import everything."""


def test_the_tests_of_an_example_pass_in_its_folder() -> None:
    shown = [one for one in blocks("python", page="testing.md") if "&& pytest`" in one.text]
    assert {block.code for block in shown} <= WHOLE
    folders = [str(ROOT / "examples" / name) for name in EXAMPLES]
    command = [sys.executable, "-c", IN_ITS_FOLDER, *folders]
    # Without the plugins that only this repository has, which take longer to load than these tests.
    environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count(" passed") == len(EXAMPLES)


async def test_cell_of_a_notebook_runs(capsys: pytest.CaptureFixture[str]) -> None:
    """A notebook compiles a cell so that it may await, and runs it in its event loop."""
    cells = [one for one in blocks("python", page="testing.md") if "\nasync with s" in one.code]
    (cell,) = cells
    flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    code = compile(cell.code, str(cell), "exec", flags, dont_inherit=True)
    await eval(code, {"__name__": "__main__"})
    assert capsys.readouterr().out == "Twice. [[1, 2]]\n"
