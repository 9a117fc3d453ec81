"""Write the files that describe the wire to other languages, and return whether any is out of date.

    python -m tools.gen_schemas            writes them
    python -m tools.gen_schemas --check    fails if that would change a byte

`schemas/components/` has the props of every core component as JSON Schema, `schemas/messages/` the
messages of both directions, and `web/core/src/protocol/generated/` both as TypeScript.
`web/react/src/generated/` and `web/vue/src/generated/` wrap each component for a framework. The
messages of the object dialect are generated from `schemas/arp-core.protocol.yaml`.
`schemas/openapi.json` describes the HTTP routes. The server serves copies of these files, and of
`arp.proto`, the object dialect and the conformance cases, so that the wheel contains them.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, get_args

import msgspec

from arp.protocol.catalog import CATALOG, ComponentSpec
from arp.protocol.components import Component
from arp.protocol.json_value import Json, JsonObject
from arp.protocol.messages import AgentMessage, RendererMessage
from tools import object_tables, openapi, typescript
from tools.generated_files import write_or_check

ROOT = Path(__file__).resolve().parent.parent

DIALECT = "https://json-schema.org/draft/2020-12/schema"

FRAMEWORKS = {"react": "context", "vue": "provide"}
"""Packages with a wrapper for each component, with the module that defines `ArpComponents`."""

END = r"(?![\s\S])"
"""End of a text in every dialect of regular expressions; Python alone has `\\Z`."""


def main(arguments: list[str]) -> int:
    """Write or check every file; return the exit code."""
    return write_or_check(ROOT, files(), "schemas", arguments)


def files() -> dict[str, str]:
    """Return every generated file by its path from the root."""
    written = {f"schemas/components/{spec.name}.json": props(spec) for spec in CATALOG.values()}
    written["schemas/messages/agent.json"] = messages("agent", AgentMessage)
    written["schemas/messages/renderer.json"] = messages("renderer", RendererMessage)
    written["web/core/src/protocol/generated/wire.ts"] = typescript.wire_types()
    written["web/core/src/protocol/generated/tables.ts"] = typescript.tables()
    written["web/core/src/protocol/generated/codes.ts"] = typescript.codes()
    for framework, components_module in FRAMEWORKS.items():
        place = f"web/{framework}/src/generated/built_ins.ts"
        written[place] = typescript.built_ins(components_module)
    written["arp/protocol/objects/messages.py"] = object_tables.python_module()
    for place in ("schemas", "arp/server"):  # for readers of the repository, and to be served
        written[f"{place}/openapi.json"] = _text(openapi.document())
    for name in ("arp.proto", "arp-core.protocol.yaml", *_cases()):
        served = (ROOT / "schemas" / name).read_text(encoding="utf-8")
        written[f"arp/server/protocol/{name}"] = served
    return written


def _cases() -> list[str]:
    return [f"cases/{path.name}" for path in sorted((ROOT / "schemas/cases").glob("*.json"))]


def props(spec: ComponentSpec) -> str:
    """Return the schema of one component's props."""
    kinds: list[Any] = [spec.props]
    if spec.slots is not None:
        kinds.append(Component)
    (own, *_), parts = msgspec.json.schema_components(kinds, ref_template="#/$defs/{name}")
    head = {"$schema": DIALECT, "$id": f"urn:arp:component:{spec.name}:{spec.version}"}
    return _text({**head, **own, "$defs": parts})


def messages(side: str, union: Any) -> str:
    """Return the schema of the messages of one direction."""
    kinds = get_args(union)
    refs, parts = msgspec.json.schema_components(kinds, ref_template="#/$defs/{name}")
    head = {"$schema": DIALECT, "$id": f"urn:arp:messages:{side}:1"}
    title = f"A message of the {side} side, session dialect"
    return _text({**head, "title": title, "oneOf": list(refs), "$defs": parts})


_NULL = {"type": "null"}


def _text(schema: JsonObject) -> str:
    return json.dumps(_tidied(schema), indent=2, ensure_ascii=False) + "\n"


def _tidied(part: Json, name: str = "") -> Json:
    """Return a schema with one-line descriptions and patterns with the same meaning in ECMAScript.

    `null` is moved to the end of its alternatives, because its position differs between releases of
    msgspec.
    """
    if isinstance(part, dict):
        return {key: _tidied(value, key) for key, value in part.items()}
    if isinstance(part, list):
        tidied = [_tidied(item) for item in part]
        return sorted(tidied, key=_NULL.__eq__) if name == "anyOf" else tidied
    if name == "description" and isinstance(part, str):
        return " ".join(part.partition("\n\n")[0].split())
    return part.replace(r"\Z", END) if name == "pattern" else part


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
