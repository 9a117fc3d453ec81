"""No file, function, class or list of parameters outgrows what can be read at one sight."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tests.structure.source_tree import Module, committed_files, modules

HELD = modules("arp", "renderers", "examples")

MOST_FILE_LINES = 600
MOST_FUNCTION_LINES = 60
MOST_PARAMETERS = 6
MOST_ATTRIBUTES = 10
SCRIPT_SUFFIXES = {".js", ".mjs", ".ts", ".tsx", ".vue"}
VAGUE_NAMES = {"base", "common", "helper", "helpers", "manager", "util", "utils"}

Function = ast.FunctionDef | ast.AsyncFunctionDef


def test_no_file_has_more_than_600_lines() -> None:
    scripts = [Module(path) for path in committed_files() if path.suffix in SCRIPT_SUFFIXES]
    over = [
        f"{module.name}: {len(module.lines)} lines"
        for module in [*HELD, *scripts]
        if len(module.lines) > MOST_FILE_LINES and not module.is_generated
    ]
    assert not over, listed("Give each subject its own file", over)


def test_no_function_has_more_than_60_lines() -> None:
    """Its docstring is not counted: what is promised may be long."""
    over = [
        f"{where} has {lines} lines"
        for where, function in functions()
        if (lines := lines_of(function)) > MOST_FUNCTION_LINES
    ]
    assert not over, listed("Split where a name for the part comes to mind", over)


def test_no_function_takes_more_than_six_parameters() -> None:
    """Free of it: keywords of builders in ui.py, one per prop; click commands, one per option."""
    over = [
        f"{where} takes {count}"
        for where, function in functions()
        if not is_click_command(function)
        and (count := parameters(function, builders="arp/ui.py:" in where)) > MOST_PARAMETERS
    ]
    assert not over, listed("Put what belongs together into a Struct", over)


def test_no_class_holds_more_than_ten_attributes() -> None:
    """Counted is what a method sets on `self`; the fields of a message are the wire's to count."""
    over = [
        f"{module.name}:{node.lineno} {node.name} holds {len(names)}: {', '.join(sorted(names))}"
        for module in HELD
        for node in module.walk(ast.ClassDef)
        if len(names := attributes(node)) > MOST_ATTRIBUTES
    ]
    assert not over, listed("Two things are one class here", over)


def test_files_are_named_after_the_noun_that_they_define() -> None:
    vague = [
        module.name
        for module in HELD
        if VAGUE_NAMES & {module.path.stem.strip("_"), module.path.parent.name}
    ]
    assert not vague, listed(f"None of {', '.join(sorted(VAGUE_NAMES))} says what is in it", vague)


def functions() -> Iterator[tuple[str, Function]]:
    """Each function with where it stands, as `arp/x.py:12 name()`."""
    for module in HELD:
        found: list[Function] = [*module.walk(ast.FunctionDef), *module.walk(ast.AsyncFunctionDef)]
        for node in found:
            yield f"{module.name}:{node.lineno} {node.name}()", node


def lines_of(function: Function) -> int:
    """Lines from `def` to the end, without the docstring."""
    whole = (function.end_lineno or function.lineno) - function.lineno + 1
    if ast.get_docstring(function) is None:
        return whole
    docstring = function.body[0]
    return whole - ((docstring.end_lineno or docstring.lineno) - docstring.lineno + 1)


def parameters(function: Function, builders: bool) -> int:
    """How many parameters a caller may fill in; of `builders` only those without a name."""
    takes = function.args
    positional = [
        argument.arg
        for argument in [*takes.posonlyargs, *takes.args]
        if argument.arg not in ("self", "cls")
    ]
    named = [] if builders else takes.kwonlyargs
    return len(positional) + len(named) + bool(takes.vararg) + bool(takes.kwarg)


def is_click_command(function: Function) -> bool:
    """Whether a decorator `….command(…)` fills in the parameters from the command line."""
    return any(
        isinstance(decorator, ast.Call)
        and isinstance(decorator.func, ast.Attribute)
        and decorator.func.attr == "command"
        for decorator in function.decorator_list
    )


def attributes(node: ast.ClassDef) -> set[str]:
    """Names that the class's own methods set on `self`."""
    methods = [statement for statement in node.body if isinstance(statement, Function)]
    return {
        target.attr
        for method in methods
        for target in ast.walk(method)
        if isinstance(target, ast.Attribute)
        and isinstance(target.ctx, ast.Store)
        and isinstance(target.value, ast.Name)
        and target.value.id == "self"
    }


def listed(advice: str, offenders: list[str]) -> str:
    """One message with all offenders, so that one run shows all of them."""
    return f"{advice}:\n  " + "\n  ".join(offenders)


def parsed(source: str) -> Function:
    """The one function of `source`."""
    (node,) = ast.parse(source).body
    assert isinstance(node, Function)
    return node


def test_the_measures_measure_what_they_say() -> None:
    assert len(HELD) > 10
    assert lines_of(parsed('def f():\n    """Says.\n\n    More.\n    """\n    return 1\n')) == 2
    assert parameters(parsed("def f(self, a, /, b, *c, d, **e): ..."), builders=False) == 5
    assert parameters(parsed("def f(a, *, b, c): ..."), builders=True) == 1
    assert is_click_command(parsed("@main.command('x')\ndef f(): ..."))
    assert not is_click_command(parsed("@app.agent\ndef f(): ..."))
    (node,) = ast.parse("class C:\n def f(self, x):\n  self.a, self.b = x\n  x.c = self.d").body
    assert isinstance(node, ast.ClassDef)
    assert attributes(node) == {"a", "b"}
