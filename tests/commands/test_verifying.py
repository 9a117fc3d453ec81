"""What is printed of a pack does nothing to the terminal that it is printed on."""

from __future__ import annotations

import io
import sys
from hashlib import sha256
from pathlib import Path

import pytest

from arp.commands.verifying import show_pack
from tests.evidence.packs import exported
from tests.evidence.test_export import FACTS_OF_STORY

RUDE = b"a \x1b[31mred\x07 word\xc2\x9b2J\nand \xff more\n"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_gets_a_part_without_control_characters(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    digest = sha256(RUDE).hexdigest().encode()
    facts = [fact.replace(b"a" * 64, digest) for fact in FACTS_OF_STORY]
    made = exported(facts, tmp_path / "pack", read=lambda ref: RUDE)
    part = made.manifest.outputs[0].part
    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    show_pack(tmp_path / "pack", part, as_json=False)
    assert terminal.getvalue() == "a  [31mred  word 2J\nand \ufffd more\n"
