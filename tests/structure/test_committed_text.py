"""Nothing committed is tied to one registry or one machine, and the pins fit the project."""

from __future__ import annotations

import re
import tomllib

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.structure.source_tree import ROOT, committed_files

# Each pattern has a letter in brackets, so that it does not find itself.
REGISTRIES = re.compile(r"npmj[s]\.(org|com)|pyp[i]\.org|pythonhoste[d]|registry\.yarnpk[g]")
MACHINE_PATHS = re.compile(r"(?<![\w.])/(wor[k]|roo[t])/")
LOCKED_TO_A_HOST = re.compile(
    r'"resolve[d]": "(?!\w+")|(url|registry|index-url)\s*[=:]\s*"?https?://'
)
LOCK_FILES = {"package-lock.json", "pylock.toml", "requirements-dev.txt", "uv.lock"}


def test_no_file_names_a_package_registry() -> None:
    assert not found(REGISTRIES), "Name the package, not where it was fetched from"


def test_no_file_names_a_path_of_one_machine() -> None:
    assert not found(MACHINE_PATHS), "Paths begin at the root of the repository"


def test_no_lock_file_is_bound_to_a_host() -> None:
    locks = [path for path in committed_files() if path.name in LOCK_FILES]
    bound = [path.name for path in locks if LOCKED_TO_A_HOST.search(path.read_text())]
    assert not bound, f"`make gen` and .npmrc keep hosts out of these: {bound}"


@pytest.mark.parametrize("extra", ["", "all", "claude", "codex", "dev", "grpc", "otel", "terminal"])
def test_each_dependency_is_pinned_to_a_version_that_the_project_allows(extra: str) -> None:
    pins = pinned_versions()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = project["optional-dependencies"][extra] if extra else project["dependencies"]
    unfit = []
    for requirement in map(Requirement, wanted):
        pin = pins.get(canonicalize_name(requirement.name))
        own = requirement.name == project["name"]
        if not own and (pin is None or not requirement.specifier.contains(pin)):
            unfit.append(f"{requirement}: pinned {pin}")
    assert not unfit, f"run make gen: {unfit}"


def pinned_versions() -> dict[str, str]:
    """Version by name, as requirements-dev.txt pins them."""
    lines = (ROOT / "requirements-dev.txt").read_text().splitlines()
    pins = (line.split(";")[0].strip().split("==") for line in lines if "==" in line)
    return {canonicalize_name(name): version for name, version in pins}


def found(pattern: re.Pattern[str]) -> list[str]:
    """Where the pattern stands, as `file:line`; files that are no UTF-8 text are passed over."""
    places = []
    for path in committed_files():
        try:
            lines = path.read_text(encoding="utf-8").splitlines()
        except UnicodeDecodeError:
            continue
        places += [
            f"{path.relative_to(ROOT)}:{number}"
            for number, line in enumerate(lines, 1)
            if pattern.search(line)
        ]
    return places


def test_the_patterns_find_what_they_are_for() -> None:
    assert REGISTRIES.search("https://registry.npmjs" + ".org/left-pad")
    assert MACHINE_PATHS.search("see /work" + "/main/arp")
    assert MACHINE_PATHS.search('"/root' + '/.cache"')
    assert not MACHINE_PATHS.search("https://example.com/frame/work" + "/x")
    assert LOCKED_TO_A_HOST.search('"resolve' + 'd": "https://')
