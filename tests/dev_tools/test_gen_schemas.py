"""What other languages know the wire by is made from the structs, and is up to date."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from arp.protocol.catalog import CATALOG
from tools.gen_schemas import ROOT, files, main
from tools.typescript import codes, tables, wire_types


def test_every_generated_file_is_up_to_date() -> None:
    assert main(["--check"]) == 0


def test_no_file_lies_in_the_generated_folders_that_is_not_made() -> None:
    folders = (
        "schemas/components",
        "schemas/messages",
        "web/core/src/protocol/generated",
        "web/react/src/generated",
        "web/vue/src/generated",
    )
    there = {
        path.relative_to(ROOT).as_posix()
        for folder in folders
        for path in (ROOT / folder).iterdir()
    }
    assert there == {name for name in files() if name.startswith(folders)}


def test_every_component_has_a_schema_with_its_required_props() -> None:
    assert {f"schemas/components/{name}.json" for name in CATALOG} < files().keys()
    table = schema("components/table")["$defs"]["TableProps"]
    assert table["required"] == ["headers", "rows"]
    assert table["additionalProperties"] is False


def test_patterns_end_where_the_text_ends_in_ecmascript_too() -> None:
    texts = files().values()
    patterns = [found for text in texts for found in re.findall(r'"pattern": "(.*)"', text)]
    assert len(patterns) > 5
    assert [pattern for pattern in patterns if not pattern.endswith(r"(?![\\s\\S])")] == []


def test_children_of_layouts_are_components() -> None:
    tab = schema("components/tabs")["$defs"]["Tab"]["properties"]["component"]
    assert tab["$ref"] == "#/$defs/Component"
    assert "component: Component;" in wire_types()


def test_shapes_of_messages_name_every_field_with_its_mark() -> None:
    told = tables()
    assert '"ack": "v?i id:s session_id~s turn_id~s serial~i"' in told
    assert '"remove": "target:s"' in told
    assert "status:|cancelled|completed|failed|queued|running|waiting|" in told
    assert "export const UNAUTHENTICATED = 14;" in codes()


def test_docs_of_fields_become_comments() -> None:
    comment = "/** Id of the preceding component; `null` = first, absent = last. */"
    assert f"{comment}\n  after?: string | null;" in wire_types()


def schema(name: str) -> dict[str, Any]:
    text = (ROOT / "schemas" / f"{name}.json").read_text(encoding="utf-8")
    found: dict[str, Any] = json.loads(text)
    return found


@pytest.mark.parametrize("framework", ["react", "vue"])
def test_each_component_has_a_wrapper_in_each_framework(framework: str) -> None:
    text = files()[f"web/{framework}/src/generated/built_ins.ts"]
    assert re.findall(r'builtIn\("([a-z-]+)"\)', text) == list(CATALOG)
    assert (
        '/** The result of an action. */\nexport const StatusCard = builtIn("status-card");' in text
    )
    assert '  "status-card": StatusCard,\n' in text
