"""What does not go into one message: shorter, or simpler, and it says so."""

from __future__ import annotations

import cbor2
import msgspec
import pytest

from arp import Component, ui
from arp.protocol.codec import encode_json
from arp.protocol.limits import RendererLimits
from arp.view.fitting import fits, longest, room, shortened, shrunk


def size(component: Component) -> int:
    """In the longest encoding."""
    plain = msgspec.json.decode(encode_json(component))
    return max(
        map(len, (encode_json(component), msgspec.msgpack.encode(plain), cbor2.dumps(plain)))
    )


def test_room_is_what_a_message_leaves_to_its_component() -> None:
    """700 bytes are for the names around it."""
    assert room(RendererLimits()) is None
    assert room(RendererLimits(max_message_bytes=1024)) == 324


def test_what_fits_is_left_as_it_is() -> None:
    """The very same component."""
    component = ui.table(["a"], [[1]], id="t")
    assert shrunk(component, 200, None) is component


def test_table_loses_rows_and_says_how_many() -> None:
    """As many stay as go in."""
    component = ui.table(["n"], [[number] for number in range(100, 200)], id="t")
    shown = shrunk(component, 200, None)
    rows = shown.props["rows"]
    kept = len(rows) - 1
    assert (shown.id, shown.type) == ("t", "table")
    assert rows[:-1] == [[number] for number in range(100, 100 + kept)]
    assert rows[-1] == [f"… {100 - kept} more rows not shown"]
    assert size(shown) <= 200 < size(shown) + 9


@pytest.mark.parametrize(
    ("component", "name"),
    [
        (ui.text("word " * 100, id="c"), "content"),
        (ui.markdown("wörd " * 100, id="c"), "content"),
        (ui.code_block("word " * 100, "python", id="c"), "code"),
    ],
)
def test_text_and_code_lose_their_end_and_say_how_much(component: Component, name: str) -> None:
    """They stay what they are."""
    shown = shrunk(component, 220, None)
    begin, _, mark = shown.props[name].partition("\n… ")
    assert (shown.id, shown.type) == ("c", component.type)
    assert component.props[name].startswith(begin)
    assert mark == f"{500 - len(begin)} more characters not shown"
    assert size(shown) <= 220


def test_what_has_no_end_to_lose_becomes_text_first() -> None:
    """A chart's numbers, a question's way to answer, a layout's contents; under the same id."""
    numbers = [0.5] * 60
    chart = ui.chart(
        "bar", labels=list(range(60)), datasets=[ui.dataset("Sales", numbers)], title="T", id="c"
    )
    choices = ui.choices([f"option {number}" for number in range(60)], title="Which?", id="c")
    layout = ui.group([ui.text("a" * 200, id="x"), ui.text("b" * 200, id="y")], id="c")
    shown = [shrunk(component, 300, None) for component in (chart, choices, layout)]
    assert [(one.id, one.type) for one in shown] == [("c", "text")] * 3
    assert all(size(one) <= 300 for one in shown)
    assert all(one.props["content"].endswith(" more characters not shown") for one in shown)
    assert shown[0].props["content"].startswith("T\n")
    assert shown[2].props["content"].startswith("a" * 150)


def test_component_whose_title_alone_is_too_long_becomes_text() -> None:
    """Never more than the renderer takes."""
    shown = shrunk(ui.code_block("x" * 50, title="t" * 500, id="c"), 200, None)
    assert (shown.id, shown.type) == ("c", "text")
    assert size(shown) <= 200


def test_fallback_that_is_too_long_goes_too() -> None:
    """It travels with its component."""
    component = ui.table(["n"], [[1]] * 3, id="t", fallback=ui.text("x" * 500))
    assert shrunk(component, 200, None).fallback is None


def test_numbers_are_measured_in_the_encoding_that_makes_them_longest() -> None:
    """0.5 has three bytes in JSON and nine in MessagePack."""
    component = ui.chart("bar", labels=["a"] * 50, datasets=[ui.dataset("d", [0.5] * 50)], id="c")
    assert len(encode_json(component)) < 520 < size(component)
    assert not fits(component, 520)
    assert fits(component, size(component))


@pytest.mark.parametrize(
    ("keep", "shown"),
    [
        (5, "abcde"),
        (4, "abcd\n… 1 more character not shown"),
        (0, "\n… 5 more characters not shown"),
    ],
)
def test_missing_characters_are_counted(keep: int, shown: str) -> None:
    """One is one character."""
    assert shortened("abcde", keep) == shown


def test_as_much_of_a_text_as_fits_is_kept() -> None:
    """Where not even the mark fits, the mark stays: somebody else must see to it."""
    assert longest("abc" * 20, lambda text: len(text) <= 40) == (
        "abcabcabc\n… 51 more characters not shown"
    )
    assert longest("abcde", lambda _: False) == "\n… 5 more characters not shown"


def test_table_of_which_no_row_fits_is_a_text_of_it_that_is_cut() -> None:
    component = ui.table(["n"], [["word " * 100], ["x"]], id="t")
    shown = shrunk(component, 220, None)
    assert (shown.id, shown.type) == ("t", "text")
    assert shown.props["content"].endswith("more characters not shown")
    assert size(shown) <= 220
