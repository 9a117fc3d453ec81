"""No function and no list of parameters is longer than a reader can take in at once."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tests.structure.source_tree import modules

HELD = modules("arp", "renderers", "examples")

MOST_FUNCTION_LINES = 60
MOST_PARAMETERS = 6
VAGUE_NAMES = {"base", "common", "helper", "helpers", "manager", "util", "utils"}

Function = ast.FunctionDef | ast.AsyncFunctionDef


def test_no_function_has_more_than_60_lines() -> None:
    """Its docstring is not counted: what is promised may be long."""
    over = [
        f"{where} has {lines} lines"
        for where, function in functions()
        if (lines := lines_of(function)) > MOST_FUNCTION_LINES
    ]
    assert not over, listed("Split where a name for the part comes to mind", over)


OF_KEYWORDS = ("arp/ui.py:", "arp/app.py:")


def test_no_function_takes_more_than_six_parameters() -> None:
    """Free of it: keywords of builders in ui.py, one per prop; of App; of click commands."""
    over = [
        f"{where} takes {count}"
        for where, function in functions()
        if not is_click_command(function)
        and (
            count := parameters(function, builders=where.startswith(("arp/ui.py:", "arp/app.py:")))
        )
        > MOST_PARAMETERS
    ]
    assert not over, listed("Put what belongs together into a Struct", over)


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
