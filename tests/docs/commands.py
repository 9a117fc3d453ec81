"""Shell commands of the docs, taken apart and tried without doing what they say."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import httpx

from arp.cli import main
from tests.docs.pages import ROOT

_TARGET = re.compile(r"^([a-z-]+):", re.MULTILINE)
_ASSIGNMENT = re.compile(r"[A-Z_]+=")
_FOUND_ELSEWHERE = (
    "",  # `.`, which reads a file of commands
    "cd",
    "docker",
    "mkdir",
    "nginx",
    "npm",
    "printf",
    "pip",
    "pytest",
    "python",
    "python3",
    "sed",
    "sqlite3",
    "uvicorn",
)


def commands(code: str) -> list[list[str]]:
    """Gives every command in a block, as words; pipes are taken apart."""
    found: list[list[str]] = []
    for line in code.splitlines():
        words = shlex.split(line, comments=True)
        while words and _ASSIGNMENT.match(words[0]):
            words.pop(0)
        while "|" in words:
            at = words.index("|")
            found.append(words[:at])
            words = words[at + 1 :]
        if words:
            found.append(words)
    return found


def check(words: list[str]) -> None:
    """Fails unless a command is one that there is, with arguments that it takes."""
    program, arguments = Path(words[0]).name, words[1:]
    match program:
        case "arp":
            _check_arp(arguments)
        case "make":
            targets = _TARGET.findall((ROOT / "Makefile").read_text())
            assert arguments[0] in targets, f"make has no target {arguments[0]}"
        case "curl":
            assert request(arguments) is not None
        case "python" | "uvicorn" | "node":
            named = [word for word in arguments if word.startswith(("examples/", "tools/"))]
            assert all((ROOT / word).exists() for word in named), words
        case "npm" if arguments[0] == "run":
            manifest = json.loads((ROOT / "examples/react_app/package.json").read_text())
            assert arguments[1] in manifest["scripts"], words
        case _:
            assert program in _FOUND_ELSEWHERE, f"{program}: say in this test how to check it"


def _check_arp(arguments: list[str]) -> None:
    """Parses the command line as `arp` does; runs nothing."""
    if arguments == ["--version"]:
        return
    if "<" in arguments:
        del arguments[arguments.index("<") : arguments.index("<") + 2]
    command: click.Command = main
    while isinstance(command, click.Group):
        command, name, arguments = command.commands[arguments[0]], arguments[0], arguments[1:]
    with command.make_context(name, list(arguments)):
        pass
    if name == "serve" and arguments[0].startswith("examples/"):
        assert (ROOT / arguments[0]).is_file(), arguments[0]


def request(arguments: list[str], base: str = "http://127.0.0.1:8080") -> httpx.Request:
    """Return the request that `curl` would make, to another server."""
    headers, data, url = {}, None, ""
    words = iter(arguments)
    for word in words:
        if word == "-H":
            name, _, value = next(words).partition(":")
            headers[name] = value.strip()
        elif word == "-d":
            data = next(words)
        elif not word.startswith("-"):
            url = word
    assert url.startswith("http://127.0.0.1:8080/"), url
    url = base + url.removeprefix("http://127.0.0.1:8080")
    return httpx.Request("POST" if data else "GET", url, headers=headers, content=data)


def flags() -> set[str]:
    """Gives every flag of every command."""
    return {
        name
        for command in _commands(main)
        for parameter in command.params
        if isinstance(parameter, click.Option)
        for name in parameter.opts
    } | {"--help"}


def _commands(group: click.Group) -> Iterator[click.Command]:
    for command in group.commands.values():
        if isinstance(command, click.Group):
            yield from _commands(command)
        else:
            yield command
