"""`arp.api`: one place for what some apps need besides `arp`."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module

import pytest

from arp import api

BLOCKED = (
    *("ag_ui", "agents", "django", "docker", "grpc", "langgraph", "mcp", "pydantic_ai"),
    "pydantic_settings",
)
WITHOUT = f"import sys; sys.modules.update(dict.fromkeys({BLOCKED}))\n"
"""A process in which no extra is installed."""


def run(program: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=15, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.parametrize("name", sorted(api._LATER))
def test_name_is_what_its_module_has(name: str) -> None:
    assert getattr(api, name) is getattr(import_module(api._LATER[name]), name)


def test_ari_has_the_objects_of_agent_runtimes() -> None:
    assert api.ari is import_module(api._MODULES["ari"])
    assert api.ari.CreateSessionRequest is api.CreateSessionRequest


def test_every_public_name_is_listed_or_needs_an_extra() -> None:
    assert set(api.__all__) | set(api._EXTRAS) == set(api._LATER) | set(api._MODULES)
    assert not set(api.__all__) & set(api._EXTRAS)


def test_all_of_it_can_be_imported_without_extras() -> None:
    assert run(f"{WITHOUT}from arp.api import *; print(McpServer.__name__)") == "McpServer"


@pytest.mark.parametrize("name", sorted(api._EXTRAS))
def test_missing_extra_is_named(name: str) -> None:
    program = f"""{WITHOUT}
try:
    from arp.api import {name}
except ModuleNotFoundError as error:
    print(error)
"""
    assert f'pip install "agent-rendering-protocol[{api._EXTRAS[name]}]"' in run(program)


def test_other_name_is_refused() -> None:
    with pytest.raises(AttributeError, match=r"'arp.api' has no attribute 'Nothing'"):
        _ = api.Nothing
