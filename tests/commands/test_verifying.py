"""What is printed of a pack does nothing to the terminal that it ends up on."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

import pytest
from click.testing import CliRunner

from arp.cli import main
from tests.audit.evidence.packs import exported
from tests.audit.evidence.test_export import FACTS_OF_STORY

RUDE = b"a \x1b[31mred\x07 word\xc2\x9b2J\nand \xff more\n"


@pytest.fixture
def pack(tmp_path: Path) -> tuple[str, str]:
    """A pack with a rude output, and the name of that part."""
    digest = sha256(RUDE).hexdigest().encode()
    facts = [fact.replace(b"a" * 64, digest) for fact in FACTS_OF_STORY]
    made = exported(facts, tmp_path / "pack", read=lambda ref: RUDE)
    return str(tmp_path / "pack"), made.manifest.outputs[0].part or ""


def test_a_part_that_is_printed_has_only_visible_characters(pack: tuple[str, str]) -> None:
    shown = CliRunner().invoke(main, ["evidence", "show", pack[0], "--part", pack[1]])
    assert shown.stdout == "a ␛[31mred␇ word<U+009B>2J\nand \ufffd more\n"


def test_a_part_is_written_byte_for_byte_where_it_is_wanted(
    pack: tuple[str, str], tmp_path: Path
) -> None:
    target = tmp_path / "output"
    words = ["evidence", "show", pack[0], "--part", pack[1], "--to", str(target)]
    assert CliRunner().invoke(main, words).output == ""
    assert target.read_bytes() == RUDE
    again = CliRunner().invoke(main, words)
    assert again.exit_code == 1
    assert "is there already" in again.stderr
    without = CliRunner().invoke(main, ["evidence", "show", pack[0], "--to", str(target)])
    assert without.exit_code == 1
    assert "name the part with --part" in without.stderr
