"""Shape of the Python tree: folders, comments, functions, methods, names of classes."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterable, Sequence

from tools.figures.source import SourceFile

MOST_FILES = 16
"""A folder with more files is listed."""

HARD_FILES: dict[str, tuple[str, ...]] = {
    "hub": ("arp/hub/hub.py",),
    "tree": ("arp/protocol/tree.py",),
    "inputs": ("arp/session/input/receive.py",),
    "translate": ("arp/view/translate.py",),
    "object dialect": (
        "arp/view/objects/dialect.py",
        "arp/view/objects/object_dialect.py",
        "arp/view/object_dialect.py",
    ),
}
"""The five files that are hardest to understand, each with the paths that it has had."""

PERMISSION_NAMES = re.compile(r"Permission|Approval|Grant")
"""Names of types for permission.

Types of questions are not counted: a question may ask for any answer, and what is special about a
question for permission is its `ApprovalTerms`.
"""

MORE_PERMISSION_TYPES = {"Approver", "Asking", "RecheckResult", "SecondLook", "ToolUse"}
"""Types of the same subject with other names, those of earlier commits included."""

NOT_PERMISSION_TYPES = {
    # Errors.
    "ApprovalNeeded",
    "PermissionDenied",
    # Messages: each protocol has types of its own for what its peers send.
    "Permission",  # in the `turn` message of ARP
    "PermissionKind",
    "PermissionRequest",  # in an event of ARI
    "PermissionResponse",
    "PermissionRule",
    "RespondPermissionRequest",
    "RespondPermissionResponse",
    # For adapters: a request of ARI with the message of the program that it comes from.
    "PendingPermission",
    # Records facts about decisions that were made elsewhere.
    "RecordedPermission",
}
"""Classes with such names that do not ask a person for permission."""

ADAPTERS = re.compile(r"arp/runtime/(?:programs/|claude_|codex_|acp_)")
"""Files of adapters: each has types for the messages of its program."""

STATES_AS_NAMES = {
    "Answered", "Arrived", "Asked", "Asking", "Asks", "Behind", "Beside", "Broken",
    "Checked", "Chosen", "Cleaned", "Closed", "Closing", "Coming", "Compared", "Confirming",
    "Cut", "Declined", "Deleted", "Derived", "Drained", "Elsewhere", "Expected", "Exported",
    "Fails", "Failed", "Fitted", "Forked", "Gathered", "Given", "Gone", "Growing",
    "Grown", "Handed", "Hanging", "Held", "Interrupted", "Kept", "Looking", "Made",
    "Measured", "Missing", "Mounted", "Named", "Numbered", "Offered", "Opened", "Particulars",
    "Placed", "Read", "Refused", "Rejected", "Remainder", "Removed", "Replayed", "Resumed",
    "Said", "Says", "Seen", "Sequenced", "Served", "Serving", "Settled", "Shown",
    "Skipped", "Spoken", "Subscribed", "Supported", "Taken", "Tells", "Thinks", "Timed",
    "Told", "Traced", "Typed", "Unclear", "Unfinished", "Unreadable", "Uses", "Versioned",
    "Waits", "Written",
}  # fmt: skip
"""Participles, verbs and adverbs that name classes by a state instead of by what they are."""

MORE_STATES_AS_NAMES = {
    "AskFirst", "CutOff", "HandedOver", "InLoop", "NotRemoved", "NotShown", "OneLook", "OwnCode",
    "SecondLook", "TurnSince", "UsedTooMuch", "WroteTooMuch",
}  # fmt: skip
"""The same in two words or more."""

_NO_REASON = re.compile(r"#\s*(?:noqa|type:|fmt:|pragma|pyright:|ruff:|mypy:|!|[-=*#]{2,})|#\s*$")


def crowded_folders(files: Iterable[SourceFile]) -> list[tuple[str, int]]:
    """Return the folders with more than 16 files side by side, the largest first."""
    found = Counter(file.folder for file in files)
    return [(name, count) for name, count in found.most_common() if count > MOST_FILES]


def reason_lines(file: SourceFile) -> int:
    """Return the number of lines with a comment that explains the code.

    Markers of sections and comments for tools (`noqa`, `type:`, `fmt:`) are not counted.
    """
    return len({line for line, text in file.comments if not _NO_REASON.match(text)})


def hard_files(files: Iterable[SourceFile]) -> dict[str, SourceFile | None]:
    """Return the hardest files by subject; `None` for a file at an unknown path."""
    by_name = {file.name: file for file in files}
    return {
        subject: next((by_name[path] for path in paths if path in by_name), None)
        for subject, paths in HARD_FILES.items()
    }


def permission_types(files: Iterable[SourceFile]) -> list[tuple[str, str]]:
    """Return name and file of each type for asking a person, outside the adapters."""
    return [
        (node.name, file.name)
        for file in files
        if not ADAPTERS.match(file.name)
        for node in file.classes()
        if node.name not in NOT_PERMISSION_TYPES
        and (PERMISSION_NAMES.search(node.name) or node.name in MORE_PERMISSION_TYPES)
    ]


def state_names(files: Iterable[SourceFile]) -> list[tuple[str, str]]:
    """Return name and file of each class that a participle, a verb or a question names."""
    return [
        (node.name, file.name)
        for file in files
        for node in file.classes()
        if node.name.strip("_") in STATES_AS_NAMES | MORE_STATES_AS_NAMES
    ]


def method_counts(files: Iterable[SourceFile], names: Sequence[str]) -> dict[str, int]:
    """Return the number of methods and properties of classes; overloads count once."""
    found = dict.fromkeys(names, 0)
    for file in files:
        for node in file.classes():
            if node.name in found:
                found[node.name] = len(
                    {
                        inner.name
                        for inner in node.body
                        if isinstance(inner, ast.FunctionDef | ast.AsyncFunctionDef)
                    }
                )
    return found


def largest_functions(files: Iterable[SourceFile], most: int) -> list[tuple[int, str]]:
    """Return lines and place of the longest functions; docstrings are not counted."""
    found = []
    for file in files:
        strings = {node.lineno: node for node in file.documentation}
        for function in file.functions():
            lines = (function.end_lineno or function.lineno) - function.lineno + 1
            docstring = strings.get(function.body[0].lineno)
            if docstring is not None:
                lines -= (docstring.end_lineno or docstring.lineno) - docstring.lineno + 1
            found.append((lines, f"{file.name}:{function.lineno} {function.name}"))
    return sorted(found, key=lambda one: (-one[0], one[1]))[:most]
