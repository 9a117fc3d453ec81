"""Whatever an agent sends, only visible characters and our own styles reach the terminal (T49)."""

from __future__ import annotations

import re
import unicodedata
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.style import Style
from rich.text import Text

from arp.protocol.catalog import CATALOG
from arp.protocol.components import Component
from arp.protocol.json_value import Json, JsonObject
from arp.protocol.safe_text import is_safe
from arp_terminal.options import Options
from arp_terminal.painter import Painter
from tests.renderers.terminal.drawing import SGR, painted, widest

ATTACKS = (
    "\x1b[2J\x1b[H",
    "\x1b]0;owned\x07",
    "\x1b]52;c;b3duZWQ=\x07",
    "\x1b]8;;https://evil.example\x1b\\click\x1b]8;;\x1b\\",
    "\x1bP+q544e\x1b\\",
    "\x1b_Ga=T;AAAA\x1b\\",
    "\x9b31m\x9d0;t\x9c",
    "ok\rno",
    "rm\b\b\b\bls",
    "\u202egnp.exe",
    "pay\u200bpal\u2028next\u2029",
    "\U000e0041\U000e0042",
    "a\x00b\x07c\x7f",
    "[bold red]markup[/] :smile:",
    "👨‍👩‍👧 日本 e\u0301",
)

TEXTS = st.one_of(
    st.sampled_from(ATTACKS),
    st.text(st.characters(codec=None), max_size=12),
    st.builds("{}{}".format, st.text(max_size=5), st.sampled_from(ATTACKS)),
)

SCALARS = st.one_of(
    TEXTS, st.none(), st.booleans(), st.integers(-(10**6), 10**20), st.floats(allow_nan=False)
)

NAMES = [
    "title",
    "label",
    "message",
    "content",
    "text",
    "name",
    "value",
    "key",
    "style",
    "status",
    "type",
    "detail",
    "description",
    "code",
    "language",
    "before",
    "after",
    "src",
    "alt",
    "caption",
    "price",
    "brand",
    "badge",
    "url",
    "image",
    "placeholder",
    "field_type",
    "state",
    "answer",
    "direction",
    "gap",
    "ratio",
    "before_label",
    "after_label",
    "icon",
    "format",
    "width",
    "height",
]
LISTS = [
    "rows",
    "headers",
    "tabs",
    "sections",
    "items",
    "steps",
    "labels",
    "datasets",
    "data",
    "cards",
    "fields",
    "options",
]


def objects(values: st.SearchStrategy[Json]) -> st.SearchStrategy[JsonObject]:
    """Objects with the names that drawings look for, of anything."""
    return st.dictionaries(
        st.one_of(st.sampled_from(NAMES + LISTS + ["children", "left", "right"]), TEXTS),
        values,
        max_size=6,
    )


ANYTHING = st.recursive(
    SCALARS, lambda inner: st.one_of(st.lists(inner, max_size=4), objects(inner)), max_leaves=20
)

PROPS = st.fixed_dictionaries(
    {},
    optional={
        **dict.fromkeys(NAMES, st.one_of(TEXTS, ANYTHING)),
        **dict.fromkeys(LISTS, st.lists(st.one_of(TEXTS, ANYTHING), max_size=4)),
        "type": st.one_of(st.sampled_from(["line", "bar", "pie", "scatter", "area"]), TEXTS),
        "children": st.lists(ANYTHING, max_size=2),
    },
)


def assert_harmless(lines: list[str], width: int) -> None:
    for line in lines:
        words = SGR.sub("", line)
        assert is_safe(words)
        assert "\n" not in words
        assert "\t" not in words
        assert not any(unicodedata.category(char) == "Cc" for char in words)
    assert widest(lines) <= width


@given(
    type_name=st.sampled_from(sorted(CATALOG)),
    props=PROPS,
    width=st.sampled_from([8, 24, 40, 80, 200]),
    unicode=st.booleans(),
)
def test_any_props_are_drawn_harmless_and_within_the_width(
    type_name: str, props: JsonObject, width: int, unicode: bool
) -> None:
    """T1, T30, T49: no shape of props raises, and no line is wider than the terminal."""
    assert_harmless(painted(Component("c", type_name, props), width=width, unicode=unicode), width)


def hostile(attack: str) -> list[Component]:
    """One component of each type with the attack in every text of it."""
    form = [{"name": attack, "label": attack, "value": attack, "placeholder": attack}]
    items: list[JsonObject] = [{"label": attack, "value": attack, "description": attack}]
    shapes: dict[str, JsonObject] = {
        "text": {"content": attack},
        "markdown": {"content": f"# {attack}\n\n[{attack}]({attack}) `{attack}`\n\n```{attack}\n"},
        "status-card": {
            "status": attack,
            "title": attack,
            "message": attack,
            "sections": [{"label": attack, "content": attack, "style": "code"}],
        },
        "table": {"title": attack, "headers": [attack], "rows": [[attack, 1]]},
        "code-block": {"title": attack, "language": attack, "code": attack},
        "diff": {"title": attack, "before": attack, "after": attack + "x", "before_label": attack},
        "key-value": {"title": attack, "items": [{"key": attack, "value": attack}]},
        "progress": {"title": attack, "steps": [{"name": attack, "detail": attack}]},
        "chart": {
            "type": "bar",
            "title": attack,
            "labels": [attack],
            "datasets": [{"label": attack, "data": [1]}],
        },
        "image": {"src": attack, "alt": attack, "caption": attack, "width": attack},
        "product-cards": {
            "title": attack,
            "cards": [dict.fromkeys(("name", "price", "url"), attack)],
        },
        "form": {"title": attack, "description": attack, "fields": form},
        "confirm": {"title": attack, "message": attack, "confirm_label": attack},
        "choices": {"title": attack, "options": items},
        "text-input": {"label": attack, "placeholder": attack},
        "group": {"children": [{"type": "text", "props": {"content": attack}}]},
        "tabs": {"tabs": [{"label": attack, "icon": attack, "component": None}]},
        "split": {"left": {"type": attack, "props": {}}, "right": attack},
        f"x-{attack}": {},
    }
    return [Component(attack, name, props) for name, props in shapes.items()]


@pytest.mark.parametrize("attack", ATTACKS, ids=range(len(ATTACKS)))
def test_no_attack_in_any_text_of_any_component_gets_through(attack: str) -> None:
    components = hostile(attack)
    assert {component.type for component in components} > set(CATALOG)
    for component in components:
        for colour in (True, False):
            assert_harmless(painted(component, width=60, colour=colour), 60)


def test_markup_in_an_agents_text_is_not_read() -> None:
    component = Component("c", "text", {"content": "[bold red]x[/] :smile: [link=a]b[/link]"})
    assert painted(component) == ["[bold red]x[/] :smile: [link=a]b[/link]"]


def test_the_painter_guards_also_what_no_drawing_has_made_harmless() -> None:
    drawing = Text("a\x1b[2Jb\u202ec", style=Style(bold=True, link="https://evil.example"))
    assert Painter(Options()).lines(drawing) == ["\x1b[1ma␛[2Jb<U+202E>c\x1b[0m"]


def test_without_colour_no_escape_is_written_at_all() -> None:
    """T9."""
    for component in hostile("x"):
        assert "\x1b" not in "".join(painted(component, colour=False))


def test_only_styles_are_ever_written() -> None:
    escapes: set[str] = set()
    for component in hostile("x y"):
        escapes.update(re.findall(r"\x1b[^m]*m?", "".join(painted(component))))
    assert escapes
    assert all(SGR.fullmatch(escape) for escape in escapes)


@pytest.mark.parametrize("width", [40, 80, 120, 200])
def test_no_line_is_wider_than_the_terminal(width: int) -> None:
    """T1."""
    long = "word " * 80 + "日本語" * 60 + "x" * 300
    everything: list[Any] = [*hostile(long)]
    for component in everything:
        assert widest(painted(component, width=width)) <= width


def test_lines_have_no_blanks_at_their_ends() -> None:
    component = Component("c", "table", {"headers": ["a", "b"], "rows": [["x", "y"], ["x", ""]]})
    assert painted(component, colour=False) == ["a  b", "─  ─", "x  y", "x"]


def test_an_emoji_of_several_characters_is_not_cut_at_the_end_of_a_line() -> None:
    component = Component("c", "code-block", {"code": "12345👨‍👩‍👧890"})
    assert painted(component, width=8, colour=False) == ["  12345", "  ↪ 👨‍👩‍👧89", "  ↪ 0"]
