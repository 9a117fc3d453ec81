"""Measure how readable the tree is: the figures that the redesign should improve.

`make figures` prints a Markdown table, followed by the counted items with file and line. To compare
two versions, measure each:

    python -m tools.measure_tree --walks
    git worktree add --detach ../before COMMIT
    python -m tools.measure_tree --walks --root ../before

The measured tree is read as text and syntax. Nothing of it is imported, except by `--walks`, which
runs `tools/trace_walk.py` on it in a separate process. A figure is a signal, not a goal: read the
counted items before you quote it.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from tools.figures import catalogues, copies, shape, web, wording
from tools.figures.source import SourceFile, code_lines, read_files

ROOT = Path(__file__).resolve().parents[1]

TERMINAL = "renderers/arp_terminal"

EDITED = ("arp", "renderers", "web", "docs")
"""Folders that are searched for lists of components and transports; tests are not."""

WALK_TIMEOUT_S = 60

BY_HAND = "not measured; counted by reading"


class Row(NamedTuple):
    """A row of the table."""

    area: str
    """`Python` or `web`."""
    measured: str
    value: str
    found: Sequence[str] = ()
    """Counted items: names, places, numbers by package."""


class Tree:
    """The measured files of a tree."""

    def __init__(self, root: Path) -> None:
        """Read the files.

        Args:
            root: Root of the tree.
        """
        self.root = root
        self.arp = read_files(root, "arp", ".py")
        self.terminal = read_files(root, TERMINAL, ".py")
        self.web = web.sources(root)

    @property
    def hand_written(self) -> list[SourceFile]:
        """The Python of `arp/` that people write."""
        return [file for file in self.arp if not file.is_generated]


def rows(tree: Tree) -> Iterator[Row]:
    """Yield every row that needs no walk."""
    yield from folder_rows(tree)
    yield from wording_rows(tree)
    yield from comment_rows(tree)
    yield from type_rows(tree)
    yield from copy_rows(tree)
    yield from edit_rows(tree)
    yield from size_rows(tree)
    yield from web_rows(tree)


def folder_rows(tree: Tree) -> Iterator[Row]:
    """Yield how many folders are crowded."""
    crowded = shape.crowded_folders(tree.arp)
    listed = ", ".join(f"{name.removeprefix('arp/')} {count}" for name, count in crowded)
    title = f"folders with more than {shape.MOST_FILES} files"
    yield Row("Python", title, f"{len(crowded)}: {listed}" if crowded else "0")


def wording_rows(tree: Tree) -> Iterator[Row]:
    """Yield the stock phrases of the Python packages."""
    by_package = wording.docstring_hits_by_package(tree.root)
    arp = {name: hits for name, hits in by_package.items() if name.startswith("arp/")}
    all_hits = [hit for hits in arp.values() for hit in hits]
    by_count = sorted(arp.items(), key=lambda one: -len(one[1]))
    yield Row(
        "Python",
        "stock phrases in docstrings of `arp/`",
        str(len(all_hits)),
        [
            *(f"{name}: {len(hits)}" for name, hits in by_count if hits),
            "most frequent: " + _pairs(wording.most_frequent(all_hits, 12)),
        ],
    )
    in_comments = [hit for file in tree.hand_written for hit in wording.comment_hits(file)]
    yield Row("Python", "stock phrases in comments of `arp/`", str(len(in_comments)))
    pages = [*read_files(tree.root, "docs", ".md"), *read_files(tree.root, "arp", ".md")]
    in_pages = [(file.name, len(wording.markdown_hits(file))) for file in pages]
    yield Row(
        "Python",
        "stock phrases in `docs/` and READMEs of `arp/`",
        str(sum(count for _, count in in_pages)),
        [f"{name}: {count}" for name, count in in_pages if count],
    )


def comment_rows(tree: Tree) -> Iterator[Row]:
    """Yield the share of lines with a comment that explains the code."""
    lines = sum(len(file.lines) for file in tree.arp)
    reasons = sum(map(shape.reason_lines, tree.arp))
    yield Row(
        "Python", "comments that explain why, whole tree", f"{_share(reasons, lines)} ({reasons})"
    )
    for subject, file in shape.hard_files(tree.arp).items():
        title = f"comments that explain why, {subject}"
        if file is None:
            yield Row("Python", title, "file not found")
        else:
            count = shape.reason_lines(file)
            share = _share(count, len(file.lines))
            yield Row("Python", title, f"{share} ({count} in `{file.name}`)")


def type_rows(tree: Tree) -> Iterator[Row]:
    """Yield types about permission, names of classes, and methods of the largest classes."""
    types = shape.permission_types(tree.arp)
    files = {name for _, name in types}
    yield Row(
        "Python",
        "types for asking a person for permission, outside adapters",
        f"{len(types)} in {len(files)} files",
        [f"{file}: {name}" for name, file in types],
    )
    named = shape.state_names([*tree.arp, *tree.terminal])
    yield Row(
        "Python",
        "classes named after a participle or a question",
        str(len(named)),
        [f"{file}: {name}" for name, file in named],
    )
    methods = shape.method_counts(tree.arp, ("Turn", "Session", "Hub"))
    yield Row("Python", "methods of `Turn`, `Session`, `Hub`", _numbers(methods.values()))


def copy_rows(tree: Tree) -> Iterator[Row]:
    """Yield the copies of infrastructure, the folds, and the languages inside strings."""
    for what, detector in copies.DETECTORS.items():
        found = copies.copies(tree.arp, detector)
        yield Row("Python", what, str(len(found)), found)
    folds = copies.copies(tree.arp, copies.folds)
    kinds = {place.rpartition("(")[2] for place in folds}
    yield Row("Python", "folds of the facts", str(len(kinds)), folds)
    in_files = {
        file.name: copies.sigil_rows(file)
        for file in tree.arp
        if file.name.startswith(copies.STRING_LANGUAGES)
    }
    signs = {sign for some in in_files.values() for row in some for sign in row}
    strings = sum(map(len, in_files.values()))
    yield Row(
        "Python",
        "languages in strings of the ledger",
        f"{len(signs)} signs in {strings} strings",
        [
            *(f"{name}: {len(some)} strings" for name, some in in_files.items() if some),
            f"signs: {' '.join(sorted(signs))}",
        ],
    )


def edit_rows(tree: Tree) -> Iterator[Row]:
    """Yield the lists that a person must edit for a new component, transport or fact type."""
    suffixes = (".py", ".md", ".ts", ".tsx", ".css", ".mjs")
    files = [file for folder in EDITED for file in read_files(tree.root, folder, *suffixes)]
    files = [file for file in files if "/tests/" not in file.name]
    components = catalogues.component_names(tree.arp)
    lists = catalogues.lists_of(components, files)
    on_web = [name for name in lists if name.startswith("web/")]
    yield Row("Python", "lists of all components kept by hand", str(len(lists)), lists)
    transports = catalogues.lists_of(catalogues.transports(tree.arp), files)
    yield Row("Python", "files that name all transports", str(len(transports)), transports)
    edits = catalogues.edits_per_fact_type(catalogues.fact_types(tree.arp), tree.hand_written)
    yield Row("Python", "files that name a type of fact (median)", f"{edits:g}")
    yield Row("web", "lists of all components kept by hand", str(len(on_web)), on_web)


def size_rows(tree: Tree) -> Iterator[Row]:
    """Yield lines and the largest functions."""
    lines = sum(len(file.lines) for file in tree.arp)
    code, imports = (sum(some) for some in zip(*map(code_lines, tree.arp), strict=True))
    yield Row("Python", "lines of `arp/`", f"{lines:,}")
    yield Row("Python", "lines of code and of imports", f"{code:,} + {imports:,}")
    longest = shape.largest_functions(tree.arp, 8)
    yield Row(
        "Python",
        "largest functions, in lines",
        _numbers(count for count, _ in longest),
        [f"{place}: {count}" for count, place in longest],
    )


def web_rows(tree: Tree) -> Iterator[Row]:
    """Yield the rows of the second table."""
    sizes = [web.files_side_by_side(tree.root, folder) for folder in web.FOLDERS]
    yield Row("web", "files in `chat`, `core/src`, the terminal", _numbers(sizes))
    written = [file for file in tree.web if not file.is_generated]
    styles = [one for name in web.PACKAGES for one in read_files(tree.root, f"web/{name}", ".css")]
    hits = [hit for file in [*written, *styles] for hit in wording.typescript_hits(file)]
    yield Row(
        "web",
        "stock phrases in comments of `web/`",
        str(len(hits)),
        [f"{name}: {count}" for name, count in _by_package(hits).items()],
    )
    of_terminal = [hit for file in tree.terminal for hit in wording.docstring_hits(file)]
    comments = [hit for file in tree.terminal for hit in wording.comment_hits(file)]
    value = f"{len(of_terminal)} in docstrings, {len(comments)} in comments"
    yield Row("web", "stock phrases in the terminal", value)
    # Other pages are texts that tests show, such as `web/e2e/long.md`.
    folders = ("web", "renderers")
    pages = [page for name in folders for page in read_files(tree.root, name, "README.md")]
    in_pages = sum(len(wording.markdown_hits(file)) for file in pages)
    yield Row("web", "stock phrases in READMEs of `web/` and the terminal", str(in_pages))
    listeners = web.listeners_to_everything(tree.web)
    yield Row("web", "listeners to every change", str(len(listeners)), listeners)
    same, of = web.identical_in_vue(tree.root)
    yield Row("web", "React code that is identical in Vue", f"{_share(same, of)} ({same} lines)")
    size = web.first_load_bytes(tree.root)
    load = "page is not built" if size is None else f"{size / 1024:.1f} KiB"
    yield Row("web", "first load of the page", load)
    yield Row("web", "files from socket to pixel, on the web and in the terminal", BY_HAND)


def walk_rows(root: Path) -> Iterator[Row]:
    """Yield the figures of both walks, which run in a separate process."""
    path = os.pathsep.join([str(root), str(root / "renderers")])
    command = [sys.executable, "-P", str(ROOT / "tools" / "trace_walk.py"), "--json"]
    done = subprocess.run(
        command,
        cwd=root,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=WALK_TIMEOUT_S,
    )
    if done.returncode:
        fault = done.stderr.strip().splitlines()[-1:]
        yield Row("Python", "walks", "failed", fault)
        return
    for name, figures in json.loads(done.stdout).items():
        value = ", ".join(f"{count} {what}" for what, count in figures.items())
        yield Row("Python", f"walk of one {name}", value)


def as_markdown(measured: Sequence[Row], *, with_details: bool) -> str:
    """Return a table for each area, followed by the counted items."""
    parts = []
    for area in dict.fromkeys(row.area for row in measured):
        lines = [f"| {area} | value |", "|---|---|"]
        lines += [f"| {row.measured} | {row.value} |" for row in measured if row.area == area]
        parts.append("\n".join(lines))
    if with_details:
        parts += [
            f"{row.measured} ({row.area}):\n  " + "\n  ".join(row.found)
            for row in measured
            if row.found
        ]
    return "\n\n".join(parts)


def lower_ceilings(root: Path) -> None:
    """Lower the ceilings of stock phrases to the present counts where these are lower."""
    now = wording.counts(wording.docstring_hits_by_package(root))
    old = wording.read_ceilings(root)
    new = wording.lowered(old, now)
    wording.write_ceilings(root, new)
    print(f"wording: the sum of the ceilings is {sum(new.values())}, there are {sum(now.values())}")


def main(arguments: list[str]) -> int:
    """Print the figures; return the exit code."""
    parser = argparse.ArgumentParser(description="Measure how readable the tree is.")
    parser.add_argument("--root", type=Path, default=ROOT, help="tree to measure")
    parser.add_argument("--walks", action="store_true", help="run the walks too")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--brief", action="store_true", help="print the table only")
    parser.add_argument(
        "--write-wording", action="store_true", help=f"lower the ceilings in {wording.CEILINGS}"
    )
    options = parser.parse_args(arguments)
    root = options.root.resolve()
    if not (root / "arp").is_dir():
        parser.error(f"--root {options.root}: there is no arp/ in it")
    if options.write_wording:
        lower_ceilings(root)
        return 0
    measured = list(rows(Tree(root)))
    if options.walks:
        measured += walk_rows(root)
    if options.json:
        print(json.dumps([row._asdict() for row in measured], indent=1))
    else:
        print(as_markdown(measured, with_details=not options.brief))
    return 0


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.2f} %" if whole else "none"


def _numbers(values: Iterable[int]) -> str:
    return ", ".join(map(str, values))


def _pairs(values: Sequence[tuple[str, int]]) -> str:
    return ", ".join(f"{name} {count}" for name, count in values)


def _by_package(hits: Iterable[wording.Hit]) -> Mapping[str, int]:
    found: dict[str, int] = {}
    for hit in hits:
        name = wording.package_of(hit.file)
        found[name] = found.get(name, 0) + 1
    return found


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
