"""Figures about the tree: what is counted as a phrase, a reason, a copy, a list."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tools.figures import catalogues, copies, shape, web, wording
from tools.figures.source import SourceFile, code_lines, read_files
from tools.measure_tree import ROOT, Row, as_markdown, main


def python(text: str, name: str = "arp/hub/x.py") -> SourceFile:
    return SourceFile(name, text)


def phrases(text: str) -> list[str]:
    return [phrase for _, phrase in wording.phrases_in(text)]


# -- wording ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Return the cursor.", []),
        ("Take that a message was sent.", ["Take"]),
        ("Messages of\n    which nobody was told.", ["of which", "nobody", "told"]),
        ("Of one that goes on anew.", ["Of", "one that", "goes on", "anew"]),
        ("As `x`, to be handed over.", ["As `", "to be handed"]),
        ("Whose it is.", ["Whose"]),
        ("The owner, whose name is known.", ["whose"]),
        ("Return a list of standard tables.", []),
        ("Return what is of use. Of this, nothing.", []),
    ],
)
def test_phrases_of_a_docstring(text: str, expected: list[str]) -> None:
    assert phrases(text) == expected


def test_docstrings_and_field_docstrings_count_with_their_lines() -> None:
    file = python(
        '"""A module\n\nof which little is known."""\n'
        "NAME = 'nobody'  # nobody\n"
        '"""Of a session."""\n'
        "class A:\n    x: int\n    '''So many of them.'''\n"
    )
    assert [str(hit) for hit in wording.docstring_hits(file)] == [
        "arp/hub/x.py:3: 'of which'",
        "arp/hub/x.py:5: 'Of'",
        "arp/hub/x.py:8: 'So many'",
    ]
    assert [hit.line for hit in wording.comment_hits(file)] == [4]


def test_comments_of_typescript_without_strings_and_expressions() -> None:
    file = SourceFile(
        "web/core/src/x.ts",
        'const a = "// nobody"; // told\n'
        "const b = `/* told */`; const c = text.split(/[\"'`]/); // said\n"
        "/**\n * Of a turn,\n * of\n * which more is known. */\n"
        "// a list of\n// which one is shown\n",
    )
    assert [(hit.line, hit.phrase) for hit in wording.typescript_hits(file)] == [
        (1, "told"),
        (2, "said"),
        (4, "Of"),
        (5, "of which"),
        (7, "of which"),
    ]


def test_blocks_of_code_in_markdown_do_not_count() -> None:
    page = SourceFile("docs/x.md", "One that\n\n```py\nnobody\n```\n\ntold\n")
    assert [(hit.line, hit.phrase) for hit in wording.markdown_hits(page)] == [
        (1, "One that"),
        (7, "told"),
    ]


def test_ceilings_fall_and_never_rise() -> None:
    assert wording.lowered(None, {"arp/hub": 3}) == {"arp/hub": 3}
    old = {"arp/hub": 3, "arp/view": 5, "arp/gone": 1}
    now = {"arp/hub": 4, "arp/view": 2, "arp/new": 7}
    assert wording.lowered(old, now) == {"arp/hub": 3, "arp/view": 2, "arp/new": 0}


def test_what_is_above_its_ceiling_is_named_with_file_and_line() -> None:
    hits = {
        "arp/hub": [wording.Hit("arp/hub/a.py", 7, "told")],
        "arp/view": [wording.Hit("arp/view/b.py", 9, "anew")],
    }
    (message,) = wording.excess({"arp/hub": 0, "arp/view": 1}, hits)
    assert "arp/hub/a.py:7: 'told'" in message
    assert "may only fall" in message
    assert len(wording.excess({}, hits)) == 2


def test_writing_ceilings_in_a_tree(tmp_path: Path) -> None:
    (tmp_path / "arp" / "hub").mkdir(parents=True)
    (tmp_path / "tests" / "structure").mkdir(parents=True)
    source = tmp_path / "arp" / "hub" / "a.py"

    def written(docstring: str) -> dict[str, int] | None:
        source.write_text(f'"""{docstring}"""\n')
        assert main(["--root", str(tmp_path), "--write-wording"]) == 0
        return wording.read_ceilings(tmp_path)

    assert written("Nobody is told.") == {"arp/hub": 2}
    assert written("Nobody.") == {"arp/hub": 1}
    assert written("Nobody is told anew.") == {"arp/hub": 1}


# -- shape -----------------------------------------------------------------------------------------


def test_comments_for_tools_and_markers_of_sections_are_no_reasons() -> None:
    file = python(
        "# -- section ----\nimport a  # noqa: F401\n# A reason.\nx = 1  # another\n"
        "y = 2  # type: ignore[x] # why\nz = 3  # fmt: skip\n#\n"
    )
    assert shape.reason_lines(file) == 2


def test_code_and_imports_are_counted_without_documentation() -> None:
    file = python(
        '"""What it is."""\n\nimport os\nfrom a import (\n    b,\n)\n\n# why\nX = 1\n"""X."""\n'
        "Y = (\n    2\n)\n"
    )
    assert code_lines(file) == (4, 4)


def test_types_about_permission_outside_adapters() -> None:
    """Errors, messages of a protocol and types of any question are not counted."""
    source = (
        "class Approval: ...\nclass PermissionDenied: ...\nclass OpenQuestion: ...\n"
        "class PermissionRequest: ...\nclass ToolUse: ...\n"
    )
    files = [
        python(source, "arp/turn/a.py"),
        python(source, "arp/runtime/programs/claude/a.py"),
        python(source, "arp/runtime/claude_session.py"),
    ]
    assert shape.permission_types(files) == [
        ("Approval", "arp/turn/a.py"),
        ("ToolUse", "arp/turn/a.py"),
    ]


def test_names_methods_and_functions() -> None:
    file = python(
        "class _Kept:\n    def a(self):\n        '''Says.\n\n        More.'''\n        return 1\n"
        "    @property\n    def b(self): ...\n    @b.setter\n    def b(self, x): ...\n"
        "class Keeper: ...\n"
    )
    assert shape.state_names([file]) == [("_Kept", "arp/hub/x.py")]
    assert shape.method_counts([file], ("_Kept", "Turn")) == {"_Kept": 2, "Turn": 0}
    assert shape.largest_functions([file], 1) == [(2, "arp/hub/x.py:2 a")]


def test_crowded_folders() -> None:
    files = [python("", f"arp/hub/{number}.py") for number in range(17)]
    assert shape.crowded_folders([*files, python("", "arp/app.py")]) == [("arp/hub", 17)]


# -- copies ----------------------------------------------------------------------------------------

COPIES = {
    "SSE readers": "def read(lines):\n  for line in lines:\n    if line.startswith('data:'): ...\n"
    "def take(name):\n  match name:\n    case 'data': ...\n    case 'event': ...\n"
    "def picture(source):\n  return source.startswith('data:')\n",
    "SSE writers": "def one(data):\n  return b'id: 1\\ndata: %b\\n\\n' % data\n"
    "def two(data):\n  return f'data: {data}\\n\\n'\ndef other():\n  'data: \\n\\n'\n",
    "outboxes": "class A:\n  def send(self): ...\n  def send_first(self): ...\n"
    "class B(Protocol):\n  def send(self): ...\n  def send_first(self): ...\n",
    "Protocol Buffers codecs": "def _varint(): ...\ndef read_varint(): ...\n",
    "`run_program`": "async def run_program(): ...\n",
    "forms from JSON Schema": "def fields_of(schema): ...\ndef other(schema): ...\n",
    "signers": "def mac(key):\n  return hmac.new(key)\n",
    "settings systems": "class A(BaseSettings): ...\n"
    "def read(name):\n  return environ[f'ARP_{name}']\n",
    "JSON tables": "class A:\n  def __init__(self):\n    self.file = JsonFile(1)\nclass B: ...\n",
    "in-process buses": "class MessageBus: ...\n",
}
FOUND = {"SSE readers": 2, "SSE writers": 2, "settings systems": 2}


@pytest.mark.parametrize("name", copies.DETECTORS)
def test_detectors_find_what_every_copy_contains(name: str) -> None:
    found = copies.copies([python(COPIES[name])], copies.DETECTORS[name])
    assert len(found) == FOUND.get(name, 1)
    assert copies.copies([python("def f(): ...\n")], copies.DETECTORS[name]) == []


def test_callers_of_the_builder_of_forms_are_no_copies() -> None:
    file = python(
        "from arp.surface.schema_form import form_of_schema\ndef fields_of(schema): ...\n"
    )
    assert list(copies.schema_forms(file)) == []


def test_signs_of_languages_in_strings() -> None:
    file = python(
        '"""A docstring: x? y@"""\nA = "model usage? @modelRequestId"\nB = ">x=* y(a,b)??"\n'
        'C = "title part:object"\nD = "Is this a row?"\nE = "plain words"\n'
    )
    assert copies.sigil_rows(file)[:3] == [{"x?", "@x"}, {">x", "x(…)", "x??"}, {"x:kind"}]


# -- lists and web ---------------------------------------------------------------------------------


def test_files_that_name_nearly_all_components() -> None:
    names = ["text", "status-card", "key-value", "chart", "table"]
    files = [
        python("text status_card KeyValueProps chart", "arp/all.py"),
        python("text StatusCard tables charting", "arp/some.py"),
        python("# Generated\ntext status-card keyValue chart table", "arp/made.py"),
    ]
    assert catalogues.lists_of(names, files) == ["arp/all.py"]
    assert catalogues.lists_of([], files) == []


def test_transports_are_those_of_the_client() -> None:
    table = python('Kind: TypeAlias = Literal["a", "b"]\nOther: TypeAlias = Literal["c"]\n')
    assert catalogues.transports([table]) == []
    file = python(table.text, "arp/client/address.py")
    assert catalogues.transports([file]) == ["a", "b"]


def test_files_that_name_a_type_of_fact() -> None:
    table = python('A = [FactType("tool.started", TOOL), FactType]\n', "arp/ledger/families/a.py")
    types = catalogues.fact_types([table])
    assert types == ["tool.started"]
    assert catalogues.edits_per_fact_type(types, [table, python('a = "tool.started"')]) == 2


def test_lines_of_react_that_are_in_vue_too(tmp_path: Path) -> None:
    for name, text in {
        "react/src/a.tsx": 'import a from "b";\n/** A. */\nconst same = 1;\n// c\nreact();\n}\n',
        "vue/src/a.ts": "const same = 1;\nvue();\n}\n",
    }.items():
        path = tmp_path / "web" / name
        path.parent.mkdir(parents=True)
        path.write_text(text)
    assert web.identical_in_vue(tmp_path) == (1, 2)
    assert web.first_load_bytes(tmp_path) is None


# -- the whole -------------------------------------------------------------------------------------


def test_every_python_file_of_the_tree_is_read() -> None:
    """A package named like a folder of built files would be missing in all figures."""
    assert {file.name for file in read_files(ROOT, "arp", ".py")} == {
        path.relative_to(ROOT).as_posix() for path in (ROOT / "arp").rglob("*.py")
    }


def test_tables_and_what_was_found() -> None:
    rows = [Row("Python", "copies", "1", ["a.py: x"]), Row("web", "files", "2")]
    assert as_markdown(rows, with_details=True) == (
        "| Python | value |\n|---|---|\n| copies | 1 |\n\n"
        "| web | value |\n|---|---|\n| files | 2 |\n\ncopies (Python):\n  a.py: x"
    )
    assert "a.py" not in as_markdown(rows, with_details=False)


def test_another_tree_is_measured_without_importing_it(tmp_path: Path) -> None:
    (tmp_path / "arp" / "hub").mkdir(parents=True)
    (tmp_path / "arp" / "hub" / "hub.py").write_text(
        'raise SystemExit("imported")\nclass Hub:\n    def a(self): return "\\ud800"\n'
    )
    command = [sys.executable, "-m", "tools.measure_tree", "--json", "--root", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=60)
    values = {row["measured"]: row["value"] for row in json.loads(done.stdout)}
    assert values["methods of `Turn`, `Session`, `Hub`"] == "0, 0, 1"
    assert values["lines of `arp/`"] == "3"


def test_a_root_without_the_package_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main(["--root", str(tmp_path)])
    assert "there is no arp/ in it" in capsys.readouterr().err
