"""Write the generated parts of the docs, and return whether any is out of date.

    python -m tools.gen_docs            writes them
    python -m tools.gen_docs --check    fails if that would change a byte

A generated part is enclosed in `<!-- generated: NAME -->` and `<!-- end -->`. `PARTS` lists the
valid names.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path

from arp import ui
from arp.protocol.components import Component
from arp.surface.degrade import RendererSupport, degrade
from tools import doc_tables, fact_tables, method_tables, object_tables, openapi, runtime_tables

ROOT = Path(__file__).resolve().parent.parent

MARKED = re.compile(r"(<!-- generated: (?P<name>\S+) -->\n)(?P<body>.*?)(<!-- end -->)", re.DOTALL)
FENCE = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)
LANGUAGES = {".py": "python", ".toml": "toml", ".js": "js"}


def main(arguments: list[str]) -> int:
    """Write or check every page; return the exit code."""
    check = "--check" in arguments
    stale = []
    for page in pages():
        text = page.read_text(encoding="utf-8")
        written = generate(text)
        if written != text:
            stale.append(page.relative_to(ROOT).as_posix())
            if not check:
                page.write_text(written, encoding="utf-8")
    listed, llms = llms_text(), ROOT / "llms.txt"
    if not llms.exists() or llms.read_text(encoding="utf-8") != listed:
        stale.append("llms.txt")
        if not check:
            llms.write_text(listed, encoding="utf-8")
    for name in stale:
        print(f"docs: {name} {'is out of date; run make gen' if check else 'written'}")
    return 1 if stale and check else 0


def llms_text() -> str:
    """Return the list of the documentation for language models (llmstxt.org)."""
    rows = re.findall(
        r"^\| (.+?) \| \[(.+?)\]\((.+?\.md)\)", (ROOT / "docs/index.md").read_text(), re.M
    )
    links = "\n".join(f"- [{title}](docs/{name}): {wish}" for wish, title, name in rows)
    return (
        "# ARP, the Agent Rendering Protocol\n\n"
        "> A Python library, a server and clients that connect agents to user interfaces. An agent "
        "says what to show (text, tables, charts, forms, approvals); a web page, a terminal or "
        "another program shows it. `from arp import App, Turn, ui`; `arp serve app.py`.\n\n"
        "## Documentation\n\n- [README](README.md): what it is, and ten lines of agent\n"
        f"{links}\n\n"
        "## Data\n\n- [OpenAPI](schemas/openapi.json): the HTTP routes\n"
        "- [JSON Schemas](schemas/README.md): components, messages and facts\n"
    )


def pages() -> list[Path]:
    """Return every page of the docs, the README first."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def generate(text: str) -> str:
    """Return a page with its generated parts renewed.

    Raises:
        ValueError: A part has no generator; the message lists the valid names.
    """

    def replace(found: re.Match[str]) -> str:
        kind, _, argument = found["name"].partition(":")
        if kind not in PARTS:
            raise ValueError(f"no part {kind!r}; there are {', '.join(PARTS)}")
        body = PARTS[kind](argument, text[: found.start()])
        return f"{found[1]}\n{body}\n\n{found[4]}"

    return MARKED.sub(replace, text)


def include(path: str, _: str) -> str:
    """Return a file of this repository as a block of code."""
    file = ROOT / path
    language = LANGUAGES.get(file.suffix, "text")
    return f"```{language}\n{file.read_text(encoding='utf-8').rstrip()}\n```"


def degraded(to: str, before: str) -> str:
    """Return the form in which a simpler renderer shows the component of the previous code block.

    Args:
        to: Component types that the renderer knows besides text, separated by commas; may be empty.
        before: Text of the page before this part.
    """
    source = FENCE.findall(before)[-1]
    component = eval(source, {"ui": ui})  # a page of ours, not of a stranger
    assert isinstance(component, Component)
    known = RendererSupport(dict.fromkeys(filter(None, to.split(",")), 1))
    shown = degrade(component, known)
    return "\n\n".join(as_block(piece) for piece in shown)


def as_block(component: Component) -> str:
    """Return a component as a block: its text, or its props."""
    if component.type == "text":
        return f"```text\n{component.props['content']}\n```"
    call = ", ".join(f"{name}={value!r}" for name, value in component.props.items())
    return f"```text\n{component.type}: {call}\n```"


PARTS: dict[str, Callable[[str, str], str]] = {
    "components": lambda page, _: doc_tables.components(page),
    "props": lambda name, _: doc_tables.props(name),
    "arguments": lambda place, _: doc_tables.arguments(place),
    "names": lambda module, _: doc_tables.public_names(module),
    "fields": lambda place, _: doc_tables.fields(place),
    "facts": lambda _, __: fact_tables.facts(),
    "payload-fields": lambda _, __: fact_tables.fields(),
    "beside": lambda _, __: fact_tables.beside(),
    "errors": lambda _, __: doc_tables.error_codes(),
    "flags": lambda command, _: doc_tables.flags(command),
    "methods": lambda _, __: method_tables.methods(),
    "runtime-capabilities": lambda _, __: runtime_tables.capabilities(),
    "runtime-matrix": lambda _, __: runtime_tables.matrix(),
    "runtime-reasons": lambda _, __: runtime_tables.reasons(),
    "interfaces": lambda _, __: object_tables.interface_tables(),
    "states": lambda name, _: object_tables.diagram(name),
    "openapi": lambda _, __: openapi.table(),
    "include": include,
    "degraded": degraded,
}
"""Generator of each kind of part: a function of its argument and the text before it."""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
