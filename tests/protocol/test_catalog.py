"""The catalog says what protocol.md 3 says."""

from __future__ import annotations

import pytest

from arp.protocol.catalog import CATALOG, VERSIONS, chain, is_custom

CHAINS = {
    "text": ("text",),
    "markdown": ("markdown", "text"),
    "status-card": ("status-card", "text"),
    "table": ("table", "text"),
    "code-block": ("code-block", "text"),
    "diff": ("diff", "code-block", "text"),
    "key-value": ("key-value", "text"),
    "progress": ("progress", "text"),
    "chart": ("chart", "table", "text"),
    "image": ("image", "text"),
    "product-cards": ("product-cards", "table", "text"),
    "form": ("form", "text"),
    "confirm": ("confirm", "text"),
    "choices": ("choices", "text"),
    "text-input": ("text-input", "text"),
    "group": ("group", "text"),
    "tabs": ("tabs", "group", "text"),
    "split": ("split", "group", "text"),
}


def test_there_are_18_core_components_of_version_1() -> None:
    assert set(CATALOG) == set(CHAINS)
    assert len(CATALOG) == 18
    assert dict(VERSIONS) == dict.fromkeys(CHAINS, 1)


@pytest.mark.parametrize("name", CHAINS)
def test_every_chain_ends_in_text_in_declared_order(name: str) -> None:
    assert chain(name) == CHAINS[name]


def test_an_unknown_type_has_no_chain() -> None:
    with pytest.raises(KeyError):
        chain("tabel")


def test_categories_answers_and_slots_are_those_of_the_protocol() -> None:
    assert {n: s.answered_by for n, s in CATALOG.items() if s.answered_by} == {
        "table": "selection",
        "form": "form_submit",
        "confirm": "action",
        "choices": "selection",
        "text-input": "text",
        "tabs": "action",
    }
    assert {n: s.slots for n, s in CATALOG.items() if s.slots} == {
        "group": "children",
        "tabs": "tabs",
        "split": "split",
    }
    assert {n: s.text_path for n, s in CATALOG.items() if s.text_path} == {
        "text": "content",
        "markdown": "content",
        "code-block": "code",
    }
    inputs = [name for name, spec in CATALOG.items() if spec.category == "input"]
    assert inputs == ["form", "confirm", "choices", "text-input"]
    layouts = [name for name, spec in CATALOG.items() if spec.category == "layout"]
    assert layouts == ["group", "tabs", "split"]


@pytest.mark.parametrize("name", ["x-acme-map", "x-a-b-c", "s-map", "s-map-2", "x-1-2"])
def test_a_custom_type_names_its_vendor_or_is_staged(name: str) -> None:
    assert is_custom(name)


@pytest.mark.parametrize(
    "name",
    [
        "",
        "x-acme",
        "x--map",
        "s-",
        "s-a-",
        "x-Acme-map",
        "x-a_b-c",
        "map",
        "s-map\n",
        "x-ä-map",
        "s-" + "a" * 63,
    ],
)
def test_other_names_are_not_custom(name: str) -> None:
    assert not is_custom(name)
