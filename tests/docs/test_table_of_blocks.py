"""No block of code is in the docs that nobody runs."""

from __future__ import annotations

import re
import tomllib

import pytest

from tests.docs.pages import PAGES, ROOT, blocks
from tests.docs.table_of_blocks import COMMANDS, LANGUAGES, RULES, rows, runner

TESTS = sorted({test for _, test in rows() if not test.startswith("-")})


def test_every_block_is_in_the_table() -> None:
    """A block without a rule raises; one in a language that nobody knows is not found."""
    text = "".join(page.read_text(encoding="utf-8") for page in PAGES)
    fences = len(re.findall(r"^ *```", text, re.MULTILINE))
    assert len(blocks(*LANGUAGES, "")) * 2 == fences


def test_every_rule_is_used() -> None:
    named = {test for _, test in rows()}
    assert {rule.test for rule in RULES} <= named
    assert {test for _, test in COMMANDS} <= named


@pytest.mark.parametrize("test", TESTS)
def test_a_test_of_the_table_exists(test: str) -> None:
    """Without a function, the whole file is meant."""
    file, _, function = test.partition("::")
    code = (ROOT / "tests" / file).read_text(encoding="utf-8")
    if file.endswith((".ts", ".tsx")):
        assert not function or f'test("{function}"' in code
    else:
        assert re.search(rf"^(?:async )?def {function or 'test_'}", code, re.MULTILINE)


def test_only_drawings_and_installations_are_not_run() -> None:
    for block, test in rows():
        if test.startswith("-"):
            assert block.language in ("text", "mermaid", "sh"), block
            assert block.language != "sh" or "pip install" in block.text, block


def test_the_extras_that_the_docs_install_exist() -> None:
    with (ROOT / "pyproject.toml").open("rb") as file:
        extras = set(tomllib.load(file)["project"]["optional-dependencies"])
    named = {
        extra
        for block in blocks("sh")
        for found in re.findall(r"agent-rendering-protocol\[([\w,-]+)\]", block.text)
        for extra in found.split(",")
    }
    assert len(named) > 8
    assert named <= extras


def test_a_command_that_nothing_runs_is_found() -> None:
    with pytest.raises(AssertionError, match="no test runs: arp dance --fast"):
        runner(["arp", "dance", "--fast"])
