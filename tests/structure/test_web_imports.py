"""The web packages: no circle between their files, types and lazy imports counted."""

from __future__ import annotations

import re
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

WEB = Path(__file__).parents[2] / "web"
IMPORT = re.compile(r'(?:\bfrom|\bimport\()\s*"(\.[^"]+)"')


def imports(file: Path) -> set[Path]:
    """Return the files of ours that a file imports, by name."""
    named = {file.parent / name for name in IMPORT.findall(file.read_text(encoding="utf-8"))}
    return {path.resolve().with_suffix(".ts") for path in named if path.suffix == ".js"}


def circle(graph: dict[Path, set[Path]]) -> list[str]:
    """Return one circle, the first file named twice; nothing where there is none."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return [path.name for path in error.args[1]]
    return []


def test_no_circle_between_the_files_of_the_web_packages() -> None:
    files = [path for path in WEB.glob("*/src/**/*.ts") if "node_modules" not in path.parts]
    assert len(files) > 150
    graph = {path.resolve(): imports(path) for path in files}
    assert sum(map(len, graph.values())) > 500
    assert circle(graph) == []


@pytest.mark.parametrize(
    "line", ['import type { B } from "./b.js";', 'const b = await import("./b.js");']
)
def test_a_circle_is_found(tmp_path: Path, line: str) -> None:
    (tmp_path / "a.ts").write_text(line)
    (tmp_path / "b.ts").write_text('export { A } from "./a.js";\n')
    graph = {path.resolve(): imports(path) for path in tmp_path.glob("*.ts")}
    assert sorted(set(circle(graph))) == ["a.ts", "b.ts"]
