"""Every numbered sentence of the specification is cited by a test, and every citation is of one."""

from __future__ import annotations

import re
from collections import Counter
from typing import get_args

from msgspec.structs import fields

from arp.protocol.messages import AgentMessage
from tests.docs.pages import ROOT, section, text_of
from tests.hub.test_object_additions import additions as object_additions
from tests.protocol.test_additions import DRAFT

_SENTENCE = re.compile(r"^- \*\*([A-Z][0-9]+)\*\* (.+)", re.MULTILINE)
_CITATION = re.compile(r"\bSpec: ((?:[A-Z][0-9]+(?:, )?)+)")
_CODE = re.compile(r"`([^`]+)`")
_NAME = re.compile(r"[a-z_]+")
_WORDS = re.compile(
    r"\b(?:MUST|MUST NOT|SHOULD|MAY|may|is|needs?|makes?|names|goes|are possible)\b"
)


def sentences() -> list[str]:
    return [number for number, _ in _SENTENCE.findall(text_of("protocol.md"))]


def citations() -> set[str]:
    found: set[str] = set()
    for path in (ROOT / "tests").rglob("*.py"):
        for numbers in _CITATION.findall(path.read_text(encoding="utf-8")):
            found.update(numbers.split(", "))
    return found


def test_every_sentence_is_cited_and_every_citation_is_of_a_sentence() -> None:
    numbered = sentences()
    assert len(numbered) > 40
    assert [number for number, count in Counter(numbered).items() if count > 1] == []
    assert citations() == set(numbered)


def test_sentences_are_numbered_without_holes_under_each_letter() -> None:
    by_letter: dict[str, list[int]] = {}
    for number in sentences():
        by_letter.setdefault(number[0], []).append(int(number[1:]))
    for letter, numbers in by_letter.items():
        assert numbers == list(range(1, len(numbers) + 1)), letter


def test_every_addition_is_named_among_the_differences_from_the_draft() -> None:
    """A message that is added as a whole stands for its fields."""
    table = section("protocol.md", "Differences from the v0.1 draft")
    named = {word for code in _CODE.findall(table) for word in _NAME.findall(code)}
    added = {path for field in object_additions() for path in field.split(".")[1:]}
    for message in get_args(AgentMessage):
        kind = str(message.__struct_config__.tag)
        if kind not in DRAFT or kind == "input":
            added.add(kind)
            continue
        for field in fields(message):
            inner = field.type if field.name in ("payload", "capabilities") else None
            below = (
                {f"{field.encode_name}.{one.encode_name}" for one in fields(inner)} if inner else ()
            )
            added |= {path.rpartition(".")[2] for path in {field.encode_name, *below} - DRAFT[kind]}
    assert {"call_id", "epoch", "input_id", "ping", "target"} <= added
    assert sorted(added - named) == []


def test_every_sentence_says_what_must_hold() -> None:
    for number, text in _SENTENCE.findall(text_of("protocol.md")):
        assert _WORDS.search(text), f"{number}: {text}"
