"""Infrastructure that exists more than once, and languages inside strings.

Each detector searches for code that every copy must contain, so it finds a copy in any file and
under any name. Results are printed with their places: check the list before you quote it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Iterator

from tools.figures.source import SourceFile, constants_in

Detector = Callable[[SourceFile], Iterator[str]]


def sse_readers(file: SourceFile) -> Iterator[str]:
    """Yield functions that read the `data` field of a server-sent event."""
    for function in file.functions():
        tests_prefix = any(
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr == "startswith"
            and isinstance(node.func.value, ast.Name)
            and node.func.value.id == "line"
            and any(text in ("data:", b"data:") for text in constants_in(node))
            for node in ast.walk(function)
        )
        fields = {text for node in _compared(function) for text in constants_in(node)}
        if tests_prefix or {"event", "data"} <= fields:
            yield function.name


def _compared(function: ast.AST) -> Iterator[ast.AST]:
    for node in ast.walk(function):
        if isinstance(node, ast.Compare):
            yield from (node.left, *node.comparators)
        elif isinstance(node, ast.MatchValue):
            yield node.value


def sse_writers(file: SourceFile) -> Iterator[str]:
    """Yield functions that write the `data` field of a server-sent event."""
    docstrings = {id(node) for node in file.documentation}
    for function in file.functions():
        texts = [
            node.value
            if isinstance(node.value, bytes)
            else str(node.value).encode(errors="surrogatepass")
            for node in ast.walk(function)
            if isinstance(node, ast.Constant) and id(node) not in docstrings
        ]
        has_field = any(re.search(rb"(?:^|\n)data: ", text) for text in texts)
        if has_field and any(text.endswith(b"\n\n") for text in texts):
            yield function.name


def outboxes(file: SourceFile) -> Iterator[str]:
    """Yield classes that queue frames and can put one first; protocols do not count."""
    for node in file.classes():
        methods = {one.name for one in node.body if isinstance(one, ast.FunctionDef)}
        if {"send", "send_first"} <= methods and "Protocol" not in _base_names(node):
            yield node.name


def protobuf_codecs(file: SourceFile) -> Iterator[str]:
    """Yield the first function of a file that reads or writes a varint."""
    found = [one.name for one in file.functions() if "varint" in one.name]
    yield from found[:1]


def program_runners(file: SourceFile) -> Iterator[str]:
    """Yield functions that run a program to its end."""
    yield from (one.name for one in file.functions() if one.name == "run_program")


def schema_forms(file: SourceFile) -> Iterator[str]:
    """Yield functions that make the fields of a form from the properties of a JSON Schema."""
    imported = {
        alias.name.rpartition(".")[2]
        for node in file.nodes
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
    }
    if "form_of_schema" in imported:  # it calls the builder
        return
    for function in file.functions():
        if function.name in ("form_of_schema", "fields_of") and any(
            argument.arg == "schema" for argument in function.args.args
        ):
            yield function.name


def signers(file: SourceFile) -> Iterator[str]:
    """Yield functions that call `hmac.new`."""
    for function in file.functions():
        for node in ast.walk(function):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "hmac.new":
                yield function.name


def settings_systems(file: SourceFile) -> Iterator[str]:
    """Yield classes of pydantic-settings, and functions that read variables `ARP_…` by name."""
    yield from (node.name for node in file.classes() if "BaseSettings" in _base_names(node))
    for function in file.functions():
        if any(
            isinstance(node, ast.JoinedStr) and constants_in(node)[:1] == ["ARP_"]
            for node in ast.walk(function)
        ):
            yield function.name


def json_tables(file: SourceFile) -> Iterator[str]:
    """Yield classes that keep a table of their own in a `JsonFile`."""
    for node in file.classes():
        if any(
            isinstance(inner, ast.Call)
            and isinstance(inner.func, ast.Name)
            and inner.func.id == "JsonFile"
            for inner in ast.walk(node)
        ):
            yield node.name


def buses(file: SourceFile) -> Iterator[str]:
    """Yield buses inside one process."""
    yield from (node.name for node in file.classes() if node.name.endswith("Bus"))


FOLDS: dict[str, tuple[str, ...]] = {
    "read models": ("ReadModel",),
    "evidence": ("TrialBook", "Timeline"),
    "telemetry": ("SpanFold",),
}
"""The folds of facts, each with the classes that keep its state."""


def folds(file: SourceFile) -> Iterator[str]:
    """Yield the classes that keep the state of a fold of facts."""
    names = {name: fold for fold, some in FOLDS.items() for name in some}
    for node in file.classes():
        if node.name in names:
            yield f"{node.name} ({names[node.name]})"


DETECTORS: dict[str, Detector] = {
    "SSE readers": sse_readers,
    "SSE writers": sse_writers,
    "outboxes": outboxes,
    "Protocol Buffers codecs": protobuf_codecs,
    "`run_program`": program_runners,
    "forms from JSON Schema": schema_forms,
    "signers": signers,
    "settings systems": settings_systems,
    "JSON tables": json_tables,
    "in-process buses": buses,
}
"""Detectors by kind of infrastructure."""


def copies(files: Iterable[SourceFile], detector: Detector) -> list[str]:
    """Return the place of each copy, as `file: name`."""
    return [f"{file.name}: {name}" for file in files for name in detector(file)]


def _base_names(node: ast.ClassDef) -> set[str]:
    return {ast.unparse(base).rpartition(".")[2] for base in node.bases}


SIGILS: dict[str, re.Pattern[str]] = {
    "@x": re.compile(r"@\w"),
    "^x": re.compile(r"\^\w"),
    "<x": re.compile(r"<"),
    ">x": re.compile(r">"),
    "x@": re.compile(r".+@$"),
    "x+": re.compile(r".+\+"),
    "x?": re.compile(r".*[^?]\?$"),
    "x??": re.compile(r".*\?\?$"),
    "x=…": re.compile(r"\w+="),
    "x:kind": re.compile(r"\w+:\w"),
    "x(…)": re.compile(r"\w+\("),
}
"""Signs of the languages in strings that describe facts and records."""

_WORD = re.compile(
    r"(?:[@^]?\w+|[<>]\w*)(?::\w+)?(?:\(\w+(?:,\w+)*\))?(?:=[\w*]+)?(?:\+\w*)?@?\??\??"
)

STRING_LANGUAGES = ("arp/ledger/", "arp/audit/models/")
"""Folders whose tables are read for such strings."""


def sigil_rows(file: SourceFile) -> list[set[str]]:
    """Return the sigils in each string of such a language; docstrings do not count."""
    docstrings = {id(node) for node in file.documentation}
    rows = []
    for node in file.nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            words = node.value.split()
            if id(node) not in docstrings and words and all(map(_WORD.fullmatch, words)):
                signs = {
                    sign
                    for sign, pattern in SIGILS.items()
                    for word in words
                    if pattern.match(word)
                }
                if signs:
                    rows.append(signs)
    return rows
