"""Shell commands of the docs, taken apart and tried without doing what they say."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import click
import httpx

from arp.cli import main
from tests.docs.pages import ROOT

_TARGET = re.compile(r"^([a-z-]+):", re.MULTILINE)
_ASSIGNMENT = re.compile(r"[A-Z_]+=")
_FOUND_ELSEWHERE = ("printf", "pip", "python", "sed", "sqlite3", "uvicorn")


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
        case "python" | "uvicorn":
            named = [word for word in arguments if word.startswith(("examples/", "tools/"))]
            assert all((ROOT / word).exists() for word in named), words
        case _:
            assert program in _FOUND_ELSEWHERE, f"{program}: say in this test how to check it"


def _check_arp(arguments: list[str]) -> None:
    """Parses the command line as `arp` does; runs nothing."""
    if "<" in arguments:
        del arguments[arguments.index("<") : arguments.index("<") + 2]
    command = main.commands[arguments[0]]
    with command.make_context(arguments[0], arguments[1:]):
        pass
    if arguments[0] == "serve" and arguments[1].startswith("examples/"):
        assert (ROOT / arguments[1]).is_file(), arguments[1]


def request(arguments: list[str], base: str = "http://127.0.0.1:8080") -> httpx.Request:
    """Gives the request that `curl` would make, to another server."""
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
        for command in main.commands.values()
        for parameter in command.params
        if isinstance(parameter, click.Option)
        for name in parameter.opts
    } | {"--help"}
