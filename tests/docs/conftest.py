"""Tests of the docs: a test that the table of blocks names has to read the blocks that it names."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.docs.pages import READ, Block
from tests.docs.table_of_blocks import claimed


@pytest.fixture(autouse=True)
def _claimed_blocks_are_read(request: pytest.FixtureRequest) -> Iterator[None]:
    """Fail a test which, by the table, runs a block that it does not even read."""
    function = getattr(request.node, "originalname", request.node.name)
    blocks = claimed(f"docs/{request.node.path.name}::{function}")
    READ.clear()
    yield
    given = getattr(request.node, "callspec", None)
    if given is None:
        assert blocks <= READ, f"by tests/docs/table_of_blocks.py it runs {blocks - READ}"
    elif blocks and any(isinstance(one, Block) for one in given.params.values()):
        assert blocks & READ, "it does not run the block that it was given"
