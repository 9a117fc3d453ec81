"""Nothing reaches the agent that does not fit its question (protocol.md 2.2)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arp.protocol.components import Component
from arp.protocol.errors import InvalidAnswer
from arp.surface.answers import (
    MAX_EDITED_BYTES,
    answer_value,
    check_answer,
    closes,
    public_answer,
    understand,
)

FORM = Component(
    "f",
    "form",
    {
        "fields": [
            {"name": "age", "field_type": "number"},
            {"name": "pin", "field_type": "password"},
        ]
    },
)
SAVE = Component("f", "form", {"fields": [{"name": "a"}], "submit_action": "save"})
CONFIRM = Component("c", "confirm", {"title": "Sure?"})
ONE = Component(
    "o", "choices", {"options": ["a", {"label": "b", "value": 2}, {"label": "x", "disabled": True}]}
)
MANY = Component("m", "choices", {**ONE.props, "multi_select": True})
LINE = Component("t", "text-input", {"max_length": 3})
LINES = Component("t", "text-input", {"multiline": True})
TEXT = {"id": "x", "type": "text", "props": {"content": ""}}
TAB_0 = {"action": "tab_change", "payload": {"tab": 0}}
TABS = Component("b", "tabs", {"tabs": [{"label": "1", "component": TEXT}]})
CUSTOM = Component("m", "x-acme-map", {}, fallback=Component("", "text", {"content": ""}))

ROWS = {"headers": ["n"], "rows": [[1], [2], [3]]}
ROW = Component("r", "table", {**ROWS, "selectable": "one"})
SOME_ROWS = Component("r", "table", {**ROWS, "selectable": "many"})
PLAIN = Component("r", "table", ROWS)
CHART = Component("c", "chart", {"type": "bar", "labels": ["a", "b"], "datasets": []})
CARDS = Component("c", "product-cards", {"cards": [{"name": "Lamp"}, {"name": "Desk"}]})
NEVER = Component("r", "table", {**ROWS, "selectable": "none"})

PICKER = Component("p", "x-acme-picker", {}, fallback=ONE)


@pytest.mark.parametrize(
    ("component", "input_type", "data", "checked"),
    [
        (FORM, "form_submit", {"fields": {"age": "3"}}, {"fields": {"age": 3, "pin": None}}),
        (
            FORM,
            "form_submit",
            {"fields": {}, "action": "submit"},
            {"fields": {"age": None, "pin": None}},
        ),
        (SAVE, "form_submit", {"fields": {}}, {"action": "save", "fields": {"a": None}}),
        (
            SAVE,
            "form_submit",
            {"fields": {"a": "1"}, "action": "save", "newer": 1},
            {"action": "save", "fields": {"a": "1"}},
        ),
        (CONFIRM, "action", {"action": "confirm"}, {"action": "confirm"}),
        (
            CONFIRM,
            "action",
            {"action": "confirm", "payload": {"scope": "session", "reason": "", "more": 1}},
            {"action": "confirm", "payload": {"scope": "session"}},
        ),
        (
            CONFIRM,
            "action",
            {"action": "deny", "payload": {"scope": None, "reason": " too late "}},
            {"action": "deny", "payload": {"reason": "too late"}},
        ),
        (CONFIRM, "action", {"action": "deny", "payload": {"a": 1}}, {"action": "deny"}),
        (
            CONFIRM,
            "action",
            {"action": "confirm", "payload": {"digest": "0a", "updated_input": {"b": [1]}}},
            {"action": "confirm", "payload": {"digest": "0a", "updated_input": {"b": [1]}}},
        ),
        (ONE, "selection", {"selected": ["a"], "source": "o"}, {"selected": ["a"]}),
        (ONE, "selection", {"selected": ["2"]}, {"selected": [2]}),
        (ONE, "selection", {"selected": ["b"]}, {"selected": [2]}),
        (MANY, "selection", {"selected": []}, {"selected": []}),
        (MANY, "selection", {"selected": [2, "a", "b"]}, {"selected": [2, "a"]}),
        (LINE, "text", {"text": "abc"}, {"text": "abc"}),
        (LINES, "text", {"text": "a\nb"}, {"text": "a\nb"}),
        (
            TABS,
            "action",
            {"action": "tab_change", "payload": {"active_tab": 0}},
            {"action": "tab_change", "payload": {"tab": 0}},
        ),
        (
            TABS,
            "action",
            {"action": "tab_change", "payload": {"tab": 0}},
            {"action": "tab_change", "payload": {"tab": 0}},
        ),
        (TABS, "action", {"action": "tab_change", "tab_index": 0}, TAB_0),
        (TABS, "action", {"action": "tab_change", "payload": {"tab_index": 0}}, TAB_0),
        (TABS, "action", {"action": "tab_change", "payload": {"tab": 0}, "tab_index": 9}, TAB_0),
        (ROW, "selection", {"selected": [2], "source": "r"}, {"selected": [2]}),
        (ROW, "selection", {"selected": [0.0]}, {"selected": [0]}),
        (SOME_ROWS, "selection", {"selected": []}, {"selected": []}),
        (SOME_ROWS, "selection", {"selected": ["2", 0]}, {"selected": [2, 0]}),
        (PICKER, "selection", {"selected": ["2"]}, {"selected": [2]}),
        (PICKER, "action", {"action": "a"}, {"action": "a"}),
        (PICKER, "gesture", {"gesture": "tap"}, {"gesture": "tap"}),
        (CUSTOM, "gesture", {"anything": [1]}, {"anything": [1]}),
    ],
)
def test_an_answer_that_fits_is_given_in_one_form(
    component: Component, input_type: str, data: dict[str, Any], checked: dict[str, Any]
) -> None:
    assert check_answer(component, input_type, data) == checked


@pytest.mark.parametrize(
    ("component", "input_type", "data", "message"),
    [
        (FORM, "form_submit", {}, "fields: expected object, got null"),
        (FORM, "form_submit", {"fields": []}, "fields: expected object, got array"),
        (
            FORM,
            "form_submit",
            {"fields": {"age": "abc"}},
            'fields.age: expected a number, got "abc"',
        ),
        (
            FORM,
            "form_submit",
            {"fields": {"agee": 1}},
            'fields.agee: no such field; did you mean "age"?',
        ),
        (
            FORM,
            "form_submit",
            {"fields": {}, "action": "save"},
            'action: the form does not offer "save"',
        ),
        (
            SAVE,
            "form_submit",
            {"fields": {}, "action": 1},
            "action: the form does not offer number",
        ),
        (FORM, "text", {"text": "3"}, 'form "f" is answered by form_submit, not text'),
        (CONFIRM, "action", {}, "action: expected confirm or deny, got null"),
        (
            CONFIRM,
            "action",
            {"action": "arp.cancel"},
            'action: expected confirm or deny, got "arp.cancel"',
        ),
        (
            CONFIRM,
            "action",
            {"action": "confirm", "payload": {"scope": "always"}},
            'payload.scope: expected once or session, got "always"',
        ),
        (
            CONFIRM,
            "action",
            {"action": "deny", "payload": {"scope": ["once"]}},
            "payload.scope: expected once or session, got array",
        ),
        (
            CONFIRM,
            "action",
            {"action": "confirm", "payload": {"digest": "0" * 129}},
            "payload.digest: expected the digest of the question",
        ),
        (
            CONFIRM,
            "action",
            {"action": "confirm", "payload": {"updated_input": []}},
            "payload.updated_input: expected object, got array",
        ),
        (
            CONFIRM,
            "action",
            {"action": "deny", "payload": {"updated_input": {}}},
            "payload.updated_input: only with confirm",
        ),
        (
            CONFIRM,
            "action",
            {"action": "confirm", "payload": {"updated_input": {"a": "x" * MAX_EDITED_BYTES}}},
            "payload.updated_input: 262152 bytes as JSON; at most 262144",
        ),
        (ONE, "selection", {}, "selected: expected array, got null"),
        (ONE, "selection", {"selected": "a"}, "selected: expected array, got string"),
        (ONE, "selection", {"selected": []}, "selected: choose one"),
        (ONE, "selection", {"selected": ["a", 2]}, "selected: at most 1 can be taken, got 2"),
        (MANY, "selection", {"selected": ["a"] * 9}, "selected: at most 3 can be taken, got 9"),
        (MANY, "selection", {"selected": ["a", "z"]}, 'selected[1]: "z" is not offered'),
        (ONE, "selection", {"selected": [None]}, "selected[0]: null is not offered"),
        (ONE, "selection", {"selected": ["x"]}, 'selected[0]: "x" is not available'),
        (ONE, "action", {"action": "a"}, 'choices "o" is answered by selection, not action'),
        (ROW, "selection", {}, "selected: expected array, got null"),
        (ROW, "selection", {"selected": []}, "selected: select one row, got 0"),
        (ROW, "selection", {"selected": [0, 1]}, "selected: select one row, got 2"),
        (
            ROW,
            "selection",
            {"selected": [3]},
            "selected[0]: 3 is no row; there are 3, counted from 0",
        ),
        (
            SOME_ROWS,
            "selection",
            {"selected": [0, -1]},
            "selected[1]: -1 is no row; there are 3, counted from 0",
        ),
        (
            SOME_ROWS,
            "selection",
            {"selected": [True]},
            "selected[0]: boolean is no row; there are 3, counted from 0",
        ),
        (
            SOME_ROWS,
            "selection",
            {"selected": ["#7"]},
            'selected[0]: "#7" is no row; there are 3, counted from 0',
        ),
        (
            SOME_ROWS,
            "selection",
            {"selected": [0.5]},
            "selected[0]: number is no row; there are 3, counted from 0",
        ),
        (SOME_ROWS, "selection", {"selected": [1, "1"]}, "selected[1]: row 1 is selected twice"),
        (ROW, "action", {"action": "x"}, 'table "r" is answered by selection, not action'),
        (
            PLAIN,
            "selection",
            {"selected": [9]},
            "selected[0]: 9 is no row; there are 3, counted from 0",
        ),
        (NEVER, "selection", {"selected": [0, 0]}, "selected[1]: row 0 is selected twice"),
        (PLAIN, "action", {"action": "x"}, 'table "r" is answered by selection, not action'),
        (
            CHART,
            "selection",
            {"selected": [2]},
            "selected[0]: 2 is no row; there are 2, counted from 0",
        ),
        (CHART, "action", {"action": "x"}, 'chart "c" takes no input'),
        (LINE, "text", {"text": None}, "text: expected string, got null"),
        (LINE, "text", {"text": "abcd"}, "text: at most 3 characters, got 4"),
        (LINE, "text", {"text": "a\nb"}, "text: expected one line"),
        (TABS, "action", {"action": "close"}, 'action: expected tab_change, got "close"'),
        (
            TABS,
            "action",
            {"action": "tab_change"},
            "payload.tab: expected the number of a tab, below 1",
        ),
        (
            TABS,
            "action",
            {"action": "tab_change", "payload": 1},
            "payload.tab: expected the number of a tab, below 1",
        ),
        (
            TABS,
            "action",
            {"action": "tab_change", "payload": {"active_tab": 1}},
            "payload.tab: expected the number of a tab, below 1",
        ),
        (
            Component("s", "text", {"content": "?"}),
            "text",
            {"text": "yes"},
            'text "s" takes no input',
        ),
    ],
)
def test_an_answer_that_does_not_fit_is_refused(
    component: Component, input_type: str, data: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidAnswer) as refused:
        check_answer(component, input_type, data)
    assert refused.value.message == message
    assert refused.value.detail


@pytest.mark.parametrize(
    ("state", "message"),
    [
        ("answered", 'confirm "c" is already answered'),
        ("expired", 'confirm "c" has expired and takes no more answers'),
        ("cancelled", 'confirm "c" was cancelled and takes no more answers'),
    ],
)
def test_a_closed_question_takes_no_answer(state: str, message: str) -> None:
    closed = Component("c", "confirm", {"title": "Sure?", "state": state})
    with pytest.raises(InvalidAnswer) as refused:
        check_answer(closed, "action", {"action": "confirm"})
    assert refused.value.message == message


def test_an_open_question_takes_one() -> None:
    question = Component("c", "confirm", {"title": "Sure?", "state": "open"})
    assert check_answer(question, "action", {"action": "deny"}) == {"action": "deny"}


@pytest.mark.parametrize(
    ("component", "input_type", "data", "value"),
    [
        (FORM, "form_submit", {"fields": {"age": 3}}, {"age": 3}),
        (CONFIRM, "action", {"action": "confirm"}, True),
        (CONFIRM, "action", {"action": "deny"}, False),
        (ONE, "selection", {"selected": [2]}, 2),
        (MANY, "selection", {"selected": [2]}, [2]),
        (MANY, "selection", {"selected": []}, []),
        (LINE, "text", {"text": "abc"}, "abc"),
        (CUSTOM, "gesture", {"gesture": "tap"}, {"gesture": "tap"}),
        (CUSTOM, "action", {"action": "answer", "payload": {"at": 3}}, {"at": 3}),
        (CUSTOM, "action", {"action": "answer", "payload": None}, None),
        (CUSTOM, "action", {"action": "answer"}, {"action": "answer"}),
        (PICKER, "selection", {"selected": [2]}, 2),
        (PICKER, "gesture", {"gesture": "tap"}, {"gesture": "tap"}),
    ],
)
def test_ask_gives_the_plain_value(
    component: Component, input_type: str, data: dict[str, Any], value: Any
) -> None:
    assert answer_value(component, input_type, data) == value


def test_a_password_is_hidden_from_other_renderers() -> None:
    assert public_answer(FORM, {"age": 3, "pin": "1234"}) == {"age": 3, "pin": "••••"}
    assert public_answer(FORM, {"age": 3, "pin": None}) == {"age": 3, "pin": None}
    assert public_answer(CONFIRM, value=True) is True


@pytest.mark.parametrize(
    ("component", "text", "value"),
    [
        (FORM, "30", {"age": 30, "pin": None}),
        (CONFIRM, "Yes.", True),
        (ONE, "2", 2),
        (MANY, "1,2", ["a", 2]),
        (LINE, "abc", "abc"),
        (PICKER, "2", 2),
    ],
)
def test_typed_text_answers_as_a_renderer_would(
    component: Component, text: str, value: Any
) -> None:
    understood = understand(component, text)
    assert understood is not None
    input_type, data = understood
    checked = check_answer(component, input_type, data)
    assert answer_value(component, input_type, checked) == value


def test_a_number_that_is_not_offered_is_refused_as_typed() -> None:
    understood = understand(ONE, "7")
    assert understood is not None
    with pytest.raises(InvalidAnswer) as refused:
        check_answer(ONE, *understood)
    assert refused.value.message == 'selected[0]: "#7" is not offered'


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=6,
)


@given(
    st.sampled_from([FORM, CONFIRM, ONE, MANY, LINE, TABS]),
    st.sampled_from(["form_submit", "action", "selection", "text"]),
    st.dictionaries(
        st.sampled_from(["fields", "action", "selected", "text", "payload"]), json_values
    ),
)
def test_any_data_is_taken_or_refused_with_its_code(
    component: Component, input_type: str, data: dict[str, Any]
) -> None:
    try:
        checked = check_answer(component, input_type, data)
    except InvalidAnswer:
        return
    assert check_answer(component, input_type, checked) == checked


@pytest.mark.parametrize("component", [PLAIN, NEVER, CHART, CARDS])
def test_rows_of_any_table_can_be_selected_and_it_stays_as_it_is(component: Component) -> None:
    """Also of what a renderer shows as a table. Nothing was asked, so nothing closes."""
    data = check_answer(component, "selection", {"selected": ["1", 0]})
    assert data == {"selected": [1, 0]}
    assert answer_value(component, "selection", data) == [1, 0]
    assert not closes(component, "selection")
    assert closes(ROW, "selection")
