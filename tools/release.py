"""Build the release from a clean clone, and test it as a new user would.

    python -m tools.release             builds into dist/ and tests it
    python -m tools.release --tag       the same, then creates the tag vVERSION of the commit

Theory of operation. The committed files are cloned into an empty folder, so nothing else can get
into the release. The wheel, the sdist and the npm tarballs are built there. Then each is tested in
a new environment: the wheel alone must serve an app and answer, each extra must be resolvable, the
sdist must produce the same wheel, the tutorial must work, and the tarballs must install in an empty
application. The versions of all packages must agree, and the changelog must have a section for the
version (or `Unreleased` if no tag is created); for a tag, the section must have the date of the
release.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
import zipfile
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DIST = ROOT / "dist"
WEB_PACKAGES = ("core", "elements", "react", "vue")
COMMAND_S = 900.0

APP = """\
from arp import App, Turn

app = App(title="Tried")


@app.agent
async def echo(turn: Turn) -> None:
    await turn.say(turn.text)
"""

CLIENT = """\
import asyncio, re, subprocess, sys

from arp import connect


async def main() -> None:
    command = [sys.executable, "-m", "arp", "serve", "app.py", "--port", "0"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        address = re.search(r"http://\\S+", server.stdout.readline())[0]
        async with connect(address) as client:
            turn = await client.ask("hello")
            assert client.screen.text(turn.id) == "hello", turn
    finally:
        server.terminate()
        server.wait(15)


asyncio.run(main())
"""


class ReleaseFault(Exception):
    """The release does not meet a requirement."""


def run(*command: str | Path, cwd: Path) -> str:
    """Run a command, and return its output.

    Raises:
        ReleaseFault: The command failed; the message has its whole output.
    """
    done = subprocess.run(
        [str(word) for word in command],
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
        timeout=COMMAND_S,
    )
    if done.returncode != 0:
        told = " ".join(str(word) for word in command)
        raise ReleaseFault(f"{told}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def step(what: str) -> None:
    """Print the name of the next step."""
    print(f"release: {what}", flush=True)


# -- what has to be said the same everywhere -------------------------------------------------------


def version_of(clone: Path) -> str:
    """Return the version, which all packages must share.

    Raises:
        ReleaseFault: The versions differ.
    """
    with (clone / "pyproject.toml").open("rb") as file:
        version: str = tomllib.load(file)["project"]["version"]
    found = {"pyproject.toml": version}
    named = re.search(r'^__version__ = "(.+)"$', (clone / "arp/__init__.py").read_text(), re.M)
    found["arp/__init__.py"] = named[1] if named else "none"
    for name in WEB_PACKAGES:
        package = json.loads((clone / "web" / name / "package.json").read_text(encoding="utf-8"))
        found[f"web/{name}/package.json"] = package["version"]
    if len(set(found.values())) != 1:
        raise ReleaseFault(f"the versions differ: {found}")
    return version


def check_changelog(text: str, version: str, *, is_tagged: bool) -> None:
    """Check that the changelog describes the release.

    Raises:
        ReleaseFault: The section is missing or empty. Or a tag is requested, and there are entries
            under `Unreleased`, or the section has no date.
    """
    found = re.findall(r"^## (\S+)(.*?)\n(.*?)(?=^## |\Z)", text, re.M | re.S)
    sections = {name: body.strip() for name, _, body in found}
    wanted = version if is_tagged else "Unreleased"
    if not sections.get(wanted) and not sections.get(version):
        raise ReleaseFault(f"CHANGELOG.md: write under '## {wanted}' what is new")
    if not is_tagged:
        return
    if sections.get("Unreleased"):
        raise ReleaseFault(f"CHANGELOG.md: move what is under '## Unreleased' to '## {version}'")
    dates = {name: after for name, after, _ in found}
    if re.fullmatch(r" - \d{4}-\d\d-\d\d", dates[version]) is None:
        raise ReleaseFault(f"CHANGELOG.md: write '## {version} - YYYY-MM-DD', the date of release")


# -- building --------------------------------------------------------------------------------------


def clone_into(folder: Path) -> Path:
    """Clone the committed files."""
    run("git", "clone", "--quiet", "--no-hardlinks", ROOT, folder, cwd=ROOT)
    return folder


def build_python(clone: Path, out: Path) -> tuple[Path, Path]:
    """Build the sdist and the wheel; return both.

    Raises:
        ReleaseFault: The sdist produces a wheel with other files.
    """
    hatch = (sys.executable, "-m", "hatchling", "build")
    run(*hatch, "-t", "sdist", "-d", out, cwd=clone)
    run(*hatch, "-t", "wheel", "-d", out, cwd=clone)
    (sdist,), (wheel,) = out.glob("*.tar.gz"), out.glob("*.whl")
    unpacked = clone.parent / "from-sdist"
    shutil.unpack_archive(sdist, unpacked, filter="data")
    (source,) = unpacked.iterdir()
    run(*hatch, "-t", "wheel", "-d", unpacked / "dist", cwd=source)
    (again,) = (unpacked / "dist").glob("*.whl")
    differ = _files(wheel) ^ _files(again)
    if differ:
        raise ReleaseFault(f"the sdist results in another wheel: {sorted(differ)[:10]}")
    return sdist, wheel


def _files(wheel: Path) -> set[tuple[str, int]]:
    with zipfile.ZipFile(wheel) as archive:
        return {(one.filename, one.CRC) for one in archive.infolist()}


def build_web(clone: Path, out: Path) -> list[Path]:
    """Build the npm packages, and return their tarballs."""
    web = clone / "web"
    run("npm", "ci", "--no-audit", "--no-fund", cwd=web)
    run("npm", "run", "build", cwd=web)
    for name in WEB_PACKAGES:
        run("npm", "pack", "--pack-destination", out, cwd=web / name)
    return sorted(out.glob("*.tgz"))


# -- trying ----------------------------------------------------------------------------------------


def new_environment(folder: Path, *wanted: str | Path) -> Path:
    """Create a virtual environment with packages; return its interpreter."""
    uv = Path(sys.executable).parent / "uv"
    run(uv, "venv", "--quiet", "--python", sys.executable, folder, cwd=folder.parent)
    python = folder / "bin" / "python"
    if wanted:
        run(uv, "pip", "install", "--quiet", "--python", python, *wanted, cwd=folder.parent)
    return python


def try_wheel(wheel: Path, version: str, folder: Path) -> None:
    """Install the wheel alone and check its commands; serve an app and answer a client."""
    python = new_environment(folder / "alone", wheel)
    said = run(python.parent / "arp", "--version", cwd=folder).strip()
    if said != f"arp {version}":
        raise ReleaseFault(f"arp --version prints {said!r}, and not 'arp {version}'")
    (folder / "app.py").write_text(APP, encoding="utf-8")
    (folder / "client.py").write_text(CLIENT, encoding="utf-8")
    run(python, "client.py", cwd=folder)


def try_extras(wheel: Path, extras: Sequence[str], folder: Path) -> None:
    """Resolve each extra, without installing it."""
    python = new_environment(folder / "extras")
    uv = Path(sys.executable).parent / "uv"
    for extra in extras:
        wanted = f"agent-rendering-protocol[{extra}] @ file://{wheel}"
        run(uv, "pip", "install", "--quiet", "--dry-run", "--python", python, wanted, cwd=folder)


def try_tutorial(clone: Path) -> None:
    """Follow the tutorial in a separate clone, with the installation that it describes."""
    run(sys.executable, "-m", "tools.follow_tutorial", clone, "--install", cwd=ROOT)


def try_tarballs(tarballs: Sequence[Path], folder: Path) -> None:
    """Install the tarballs in an empty application, and import each."""
    folder.mkdir()
    (folder / "package.json").write_text('{"name": "fresh", "private": true, "type": "module"}')
    peers = ("react", "react-dom", "vue")
    run("npm", "install", "--no-audit", "--no-fund", *tarballs, *peers, cwd=folder)
    code = (
        'const core = await import("@agent-rendering/core"); if (!Object.keys(core).length) throw 1'
    )
    run("node", "--input-type=module", "-e", code, cwd=folder)
    for name in WEB_PACKAGES:
        file = f"import.meta.resolve('@agent-rendering/{name}')"
        run("node", "--input-type=module", "-e", file, cwd=folder)


def tag(version: str) -> None:
    """Create the tag of the commit.

    Raises:
        ReleaseFault: There are uncommitted changes, or the tag exists already.
    """
    if run("git", "status", "--porcelain", "--untracked-files=no", cwd=ROOT).strip():
        raise ReleaseFault("commit everything before a tag is made")
    run("git", "tag", "-a", f"v{version}", "-m", f"Version {version}", cwd=ROOT)


def release(*, makes_tag: bool) -> None:
    """Build and test everything."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="arp-release-") as name:
        work = Path(name)
        clone, out = clone_into(work / "clone"), work / "out"
        out.mkdir()
        version = version_of(clone)
        changelog = (clone / "CHANGELOG.md").read_text(encoding="utf-8")
        check_changelog(changelog, version, is_tagged=makes_tag)
        step(f"version {version}; building the wheel and the sdist")
        sdist, wheel = build_python(clone, out)
        step("trying the wheel alone")
        try_wheel(wheel, version, work)
        with (clone / "pyproject.toml").open("rb") as file:
            extras = sorted(tomllib.load(file)["project"]["optional-dependencies"])
        step(f"resolving {len(extras)} extras")
        try_extras(wheel, extras, work)
        step("following the tutorial in a clone of its own")
        try_tutorial(clone_into(work / "tutorial"))
        step("building and trying the npm packages")
        tarballs = build_web(clone, out)
        try_tarballs(tarballs, work / "web")
        shutil.rmtree(DIST, ignore_errors=True)
        shutil.copytree(out, DIST)
        if makes_tag:
            tag(version)
    names = ", ".join(path.name for path in (sdist, wheel, *tarballs))
    step(f"{names} in dist/, after {time.monotonic() - began:.0f} s")


def main(arguments: list[str]) -> int:
    """Build and test the release; return the exit code."""
    try:
        release(makes_tag="--tag" in arguments)
    except ReleaseFault as error:
        print(f"release: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
