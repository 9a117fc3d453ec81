"""The `.proto` file is up to date, and what is released stays."""

from __future__ import annotations

import re

import msgspec
import pytest

from arp.runtime.contract.services import METHODS
from arp.runtime.remote.proto_fields import ProtoNumbers
from tools.gen_proto import (
    NUMBERS,
    RELEASED,
    breaking,
    extended,
    live,
    main,
    methods_module,
    present,
    proto_text,
    read,
    table_text,
)

Field = tuple[int, str]


def test_every_file_is_up_to_date(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--check"]) == 0, capsys.readouterr().out


def test_tables_are_read_as_they_were_written() -> None:
    table = read(NUMBERS)
    assert msgspec.json.decode(table_text(table), type=ProtoNumbers) == table
    assert breaking(read(RELEASED), live(table)) == []


def test_new_fields_get_new_numbers_and_removed_ones_are_never_used_again() -> None:
    table = read(NUMBERS)
    event = dict(table.messages["Event"])
    last = max(number for number, _ in event.values())
    del event["done"]
    event["gone"] = (last + 7, "string")
    older = ProtoNumbers(table.enums, {**table.messages, "Event": event}, table.methods)
    newer = extended(older, present())
    assert newer.messages["Event"]["done"] == (last + 8, "bool")
    assert newer.messages["Event"]["type"] == table.messages["Event"]["type"]
    assert f'  reserved {last + 7};\n  reserved "gone";\n' in proto_text(newer)


def changed_event(name: str, to: Field | None) -> ProtoNumbers:
    """Return the present interface with a field of `Event` that is another, or is not there."""
    now = live(read(NUMBERS))
    event = {field: value for field, value in now.messages["Event"].items() if field != name}
    if to is not None:
        event[name] = to
    return ProtoNumbers(now.enums, {**now.messages, "Event": event}, now.methods)


@pytest.mark.parametrize(
    ("to", "message"),
    [
        (None, "Event: the field done was removed, but released (bool = 17); keep it"),
        (
            (18, "bool"),
            (
                "Event: the field done was released as bool = 17, and is now bool = 18; leave it, "
                "and add another one"
            ),
        ),
        (
            (17, "string"),
            (
                "Event: the field done was released as bool = 17, and is now string = 17; leave "
                "it, and add another one"
            ),
        ),
    ],
)
def test_a_released_field_stays_as_it_is(to: Field | None, message: str) -> None:
    assert breaking(live(read(NUMBERS)), changed_event("done", to)) == [message]


@pytest.mark.parametrize(
    ("name", "to", "is_breaking"),
    [
        ("sequence", (3, "optional int64"), False),
        ("sequence", (4, "optional int64"), True),
        ("content", (6, "optional string"), True),
    ],
)
def test_a_released_number_may_become_absent(name: str, to: Field, is_breaking: bool) -> None:
    assert bool(breaking(live(read(NUMBERS)), changed_event(name, to))) is is_breaking


def test_a_new_field_breaks_nothing() -> None:
    assert breaking(live(read(NUMBERS)), changed_event("extra", (99, "string"))) == []


def test_released_enums_messages_and_methods_stay() -> None:
    now = live(read(NUMBERS))
    states = {name: number for name, number in now.enums["SessionState"].items() if name != "idle"}
    methods = dict(list(now.methods.items())[1:])
    messages = {name: fields for name, fields in now.messages.items() if name != "Usage"}
    less = ProtoNumbers({**now.enums, "SessionState": states}, messages, methods)
    assert breaking(now, less) == [
        "SessionState: the value idle was removed, but released (2); keep it",
        "Usage was removed, but released; keep it",
        (
            "the interface: the method RuntimeVersioner/Version was removed, but released "
            "(VersionRequest returns VersionResponse); keep it"
        ),
    ]


def test_a_remote_client_has_every_method_that_is_one_call() -> None:
    called = re.findall(r'_call\("(\w+)", request, ari\.(\w+)\)', methods_module())
    assert called == [
        (method.name, method.response.__name__)
        for method in METHODS
        if method.name not in ("session_events", "close")
    ]
