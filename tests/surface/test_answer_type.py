"""A type gives the form, and the answer comes back as a value of it."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from datetime import date
from enum import Enum
from typing import Annotated, Any, Literal

import msgspec
import pydantic
import pytest

from arp.protocol.errors import InvalidAnswer
from arp.surface.answer_type import AnswerType
from arp.surface.answers import check_answer
from arp.surface.schema_form import NoForm


class Travel(Enum):
    """How somebody travels."""

    TRAIN = "train"
    PLANE = "plane"


class Trip(msgspec.Struct):
    """A trip."""

    to: Annotated[str, msgspec.Meta(description="Where to?", max_length=40)]
    start: date
    by: Travel = Travel.TRAIN
    seats: Annotated[int, msgspec.Meta(ge=1, le=9)] = 1
    price: float | None = None
    window: bool = False
    meal: Literal["none", "meat", "plants"] = "none"

    def __post_init__(self) -> None:
        """Refuse what no field says by itself."""
        if self.by is Travel.PLANE and self.seats > 2:
            raise ValueError("a plane has two seats for us")


class Guest(pydantic.BaseModel):
    """A guest."""

    name: str = pydantic.Field(description="Your name", min_length=2)
    born: date
    tickets: int = pydantic.Field(1, ge=1)

    @pydantic.field_validator("name")
    @classmethod
    def _has_no_digits(cls, name: str) -> str:
        if any(sign.isdigit() for sign in name):
            raise ValueError("a name has no digits")
        return name

    @pydantic.model_validator(mode="after")
    def _fits(self) -> Guest:
        if self.tickets > 3 and self.name == "Bob":
            raise ValueError("Bob gets three")
        return self


@dataclass
class Point:
    """A point."""

    x: float
    y: float = 0.0


def read(kind: type[Any], **given: Any) -> Any:
    """What an answer makes, through the check of every form."""
    wanted = AnswerType(kind)
    told = check_answer(wanted.form.component(id="q"), "form_submit", {"fields": given})
    return wanted.read(told["fields"])


def refused(kind: type[Any], **given: Any) -> tuple[str | None, str]:
    """Which field is refused, and the message."""
    with pytest.raises(InvalidAnswer) as error:
        read(kind, **given)
    return error.value.detail, error.value.message


def test_struct_gives_the_form() -> None:
    form = AnswerType(Trip).form
    kinds = {field.name: field.field_type for field in form.fields}
    assert kinds == {
        "to": "text",
        "start": "date",
        "by": "select",
        "seats": "number",
        "price": "number",
        "window": "checkbox",
        "meal": "select",
    }
    assert form.fields[0].label == "Where to?"
    assert [field.required for field in form.fields] == [True, True, *[False] * 5]
    assert form.fields[2].value == "train"


def test_answer_is_an_instance_of_the_struct() -> None:
    trip = read(Trip, to="Rome", start="2026-05-01", by="plane", seats="2", window=True)
    assert trip == Trip("Rome", date(2026, 5, 1), Travel.PLANE, 2, None, window=True)
    assert read(Trip, to="Rome", start="2026-05-01").seats == 1


def test_model_gives_the_form_and_comes_back() -> None:
    form = AnswerType(Guest).form
    assert [field.label for field in form.fields] == ["Your name", "Born", "Tickets"]
    assert (form.title, form.fields[0].validation is not None) == ("Guest", True)
    guest = read(Guest, name="Ann", born="2001-02-03", tickets=2)
    assert guest == Guest(name="Ann", born=date(2001, 2, 3), tickets=2)


def test_dataclass_comes_back() -> None:
    assert read(Point, x="1.5") == Point(1.5)


def test_values_stand_in_the_form() -> None:
    form = AnswerType(Trip, {"to": "Oslo", "seats": 3}).form
    assert [form.fields[0].value, form.fields[3].value] == ["Oslo", 3]


def test_refusal_of_the_type_names_its_field() -> None:
    """What fields cannot say, the type says: by a validator, or of several fields together."""
    assert refused(Guest, name="B0b", born="2001-02-03") == (
        "fields.name",
        "fields.name: Value error, a name has no digits",
    )
    assert refused(Guest, name="Bob", born="2001-02-03", tickets=4) == (
        "fields",
        "fields: Value error, Bob gets three",
    )
    assert refused(Trip, to="Rome", start="2026-05-01", by="plane", seats=3) == (
        "fields",
        "fields: a plane has two seats for us",
    )


def test_refusal_of_msgspec_names_its_field() -> None:
    class Coded(msgspec.Struct):
        code: Annotated[str, msgspec.Meta(pattern="^[A-Z]+$")]

    assert refused(Coded, code="abc")[0] == "fields.code"


def test_type_that_no_form_can_ask_is_refused_at_once() -> None:
    class Odd(msgspec.Struct):
        anything: dict[str, Any]

    with pytest.raises(NoForm, match="anything"):
        AnswerType(Odd)


def test_pydantic_is_not_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "pydantic")
    assert read(Point, x="1") == Point(1.0)
    assert "pydantic" not in sys.modules


class Shared(msgspec.Struct):
    """Something that is divided among people."""

    people: int
    share: int = 0

    def __post_init__(self) -> None:
        """Fail by itself where nobody is there."""
        self.share = 12 // self.people


def test_class_of_which_no_value_can_be_made_is_refused_with_what_can_be_asked() -> None:
    class Handle:
        pass

    with pytest.raises(NoForm, match="Handle: no form can ask for it; ask for a dataclass"):
        AnswerType(Handle)


def test_answer_is_checked_as_it_is_read_but_for_a_validator_that_fails_by_itself() -> None:
    """Nobody can be told how to answer better then; whoever reads the answer gets the failure."""
    wanted = AnswerType(Trip)
    wanted.check({"to": "Rome", "start": "2026-05-01"})
    with pytest.raises(InvalidAnswer, match="a plane has two seats"):
        wanted.check({"to": "Rome", "start": "2026-05-01", "by": "plane", "seats": 3})
    broken = AnswerType(Shared)
    broken.check({"people": 0})
    with pytest.raises(ZeroDivisionError):
        broken.read({"people": 0})
