"""A fact type and a family of fact types: the rows of the files in `families`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from arp.ledger.fact import FactField
from arp.ledger.payload_fields import PayloadField
from arp.ledger.record_steps import Effect
from arp.protocol.json_value import Json


class BothOrNeither(Struct, frozen=True):
    """Two fields of a payload that are both present or both absent."""

    one: PayloadField
    other: PayloadField


class OnlyIf(Struct, frozen=True):
    """A field of a payload that is present if and only if another field has a given value."""

    field: PayloadField
    other: PayloadField
    value: Json


class FactType:
    """Definition of one fact type: its payload, its ids and its effects; a row in `families`.

    Args:
        name: Type of the fact, such as `tool.started`.
        fields: Fields of the payload that this project writes. A payload may have more fields:
            extensions belong there and nowhere else (ledger.md 1).
        required_ids: Fields beside the payload that such a fact needs, in addition to those of its
            family.
        written_ids: Fields beside the payload that this project always writes, although the profile
            does not require them.
        relation: Rule about two fields of the payload.
        effects: Effects on the read models, in their order. A fact without effects is only counted.
    """

    __slots__ = ("effects", "fields", "name", "relation", "required_ids", "written_ids")

    def __init__(
        self,
        name: str,
        *fields: PayloadField,
        required_ids: Sequence[FactField] = (),
        written_ids: Sequence[FactField] = (),
        relation: BothOrNeither | OnlyIf | None = None,
        effects: Sequence[Effect] = (),
    ) -> None:
        self.name: Final = name
        self.fields: Final = fields
        self.required_ids: Final = tuple(required_ids)
        self.written_ids: Final = tuple(written_ids)
        self.relation: Final = relation
        self.effects: Final = tuple(effects)


class FactFamily(Struct, frozen=True):
    """Fact types with the same first word."""

    name: str
    """First word of the types."""
    records: str
    """What the facts record: a sentence for the docs."""
    types: Sequence[FactType] = ()
    """Types in the closed list of the profile."""
    own_types: Sequence[FactType] = ()
    """Types that only this project has. The published schemas refuse them; `arp-facts.schema.json`
    accepts them."""
    required_ids: Sequence[FactField] = ()
    """Fields beside the payload that each fact of the family needs (ledger.md 1)."""

    def all_types(self) -> Sequence[FactType]:
        """Return the types of the profile, then the other ones."""
        return (*self.types, *self.own_types)
