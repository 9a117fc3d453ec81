"""The files that the input of a tool call names, and whether they are still what was shown.

Theory of operation. A person who approves `sh run.sh` approves the `run.sh` that is there when the
question is shown. So every word of the input that is the path of an existing file is looked at
before the question, and again when the answer is "allow": a file that has another content,
vanished, appeared or leads elsewhere makes the answer one about something else, and nothing runs.

A word that names nothing costs one `stat` and binds nothing, so words are taken generously, and
nothing is known here of interpreters and their options. Names that only a shell makes (variables,
patterns, substitutions) and files that nobody names are not found.
"""

from __future__ import annotations

import asyncio
import os
import re
import shlex
import stat
import time
from collections.abc import Callable, Iterator
from hashlib import sha256
from typing import NamedTuple

import msgspec

from arp.protocol.json_value import Json, JsonObject
from arp.runtime.contract import types as ari
from arp.turn.tool import Approval, SecondLook

LOOK_S = 5.0
"""How long one look may take; what takes longer counts as changed."""
MAX_WORDS = 100_000
"""Of one input. A command on Linux has at most 128 KiB, which is 65,536 words."""
MAX_DIRECTORIES = 64
"""In which the words of one input may be files."""
MAX_FILE_BYTES = 16 << 20
"""A larger file is recognised by its size, its times and its place on the disk."""
MAX_READ_BYTES = 64 << 20
"""Of all files of one look."""
MAX_SEARCHED_BYTES = 1 << 20
"""A larger file is not searched for secrets: nobody can guess its whole content."""
MAX_RECORDED = 100
"""Files that a fact lists."""
MAX_PATH = 4_096
MAX_NESTED = 4
"""Commands in quotes, within each other: `bash -c "sh -c '…'"`."""
READ_BYTES = 1 << 20

COMMAND_NAMES = frozenset(("args", "argv", "cmd", "command", "commands", "script"))
"""Fields of an input that hold commands, also where its kind does not say so."""
_ENTERS = frozenset(("-C", "--cwd", "--directory", "--prefix", "cd", "pushd"))
"""Words that are followed by the name of a directory."""
_PIECE = re.compile(r"[^\s'\"`;&|<>(){}\[\]$,=:@]+")
_SPLITS = re.compile(r"[\s'\"`;&|<>()]")
_OF_THE_KERNEL = ("/proc/", "/sys/")
"""What is there is no file: it is made when it is read."""
_FLAGS = os.O_RDONLY | sum(
    getattr(os, name, 0) for name in ("O_NONBLOCK", "O_NOCTTY", "O_NOFOLLOW", "O_CLOEXEC")
)


class InputWords(NamedTuple):
    """The words of an input."""

    words: tuple[str, ...]
    """Each once; any may be the path of a file."""
    directories: tuple[str, ...]
    """Those that may be a directory in which a command works, in their order."""


class NamedFile(msgspec.Struct, frozen=True):
    """A file that an input names, as it is at one moment."""

    word: str
    """As the input has it."""
    path: str
    """Behind all links."""
    bytes: int
    sha256: str = ""
    """Of its content; empty: it is too large, or cannot be read."""
    stamp: tuple[int, ...] = ()
    """Of one without a digest: place on the disk and times."""
    has_secret: bool = False
    """Its digest is not told: who knows the rest could try secrets with it."""

    def is_as(self, other: NamedFile) -> bool:
        """Return whether it is the same file with the same content."""
        mine = (self.path, self.bytes, self.sha256, self.stamp)
        return mine == (other.path, other.bytes, other.sha256, other.stamp)


class SeenFiles(NamedTuple):
    """What one look has found."""

    files: dict[str, NamedFile]
    """By path as the input and its directories give it."""
    words: frozenset[str] = frozenset()
    """Those that were looked up."""
    problem: str = ""
    """Why not all could be looked at; empty: all were."""


class FilesUnclear(Exception):
    """Not all files could be looked at; the text says why, for people."""


def words_of(tool_input: Json, *, is_command: bool) -> InputWords:
    """Return the words of an input.

    Args:
        tool_input: As a runtime gives it.
        is_command: Whether its texts are commands; else those of `COMMAND_NAMES` are.

    Raises:
        FilesUnclear: There are more than `MAX_WORDS`.
    """
    words: dict[str, None] = {}
    directories: dict[str, None] = {}
    for text, splits in _texts(tool_input, is_command):
        before = ""
        for word in _words(text) if splits else iter([text]):
            for one in map(_plain, _variants(word)):
                if 0 < len(one) <= MAX_PATH and "\0" not in one:
                    words[one] = None
                    if before in _ENTERS or not splits or word is text:
                        directories[one] = None
            if len(words) > MAX_WORDS:
                raise FilesUnclear(f"the input has more than {MAX_WORDS:,} words")
            before = word
    return InputWords(tuple(words), tuple(directories))


def _texts(value: Json, is_command: bool) -> Iterator[tuple[str, bool]]:
    """Return each text in a value in order, names of fields too, and whether it is a command."""
    stack: list[tuple[Json, bool]] = [(value, is_command)]
    while stack:
        one, splits = stack.pop()
        if isinstance(one, str):
            yield one, splits
        elif isinstance(one, dict):
            for name, item in reversed(one.items()):
                stack.append((item, splits or name in COMMAND_NAMES))
                stack.append((name, False))
        elif isinstance(one, list):
            stack.extend((item, splits) for item in reversed(one))


def _words(text: str, depth: int = 0) -> Iterator[str]:
    """Return the words of a command as a shell splits it, and smaller pieces of it."""
    yield text
    lexer = shlex.shlex(text, posix=True, punctuation_chars=True)
    lexer.whitespace_split, lexer.commenters = True, ""
    try:
        for token in lexer:
            yield token
            if depth < MAX_NESTED and token != text and _SPLITS.search(token):
                yield from _words(token, depth + 1)
    except ValueError:  # quotes that do not end: the pieces are there all the same
        pass
    if depth == 0:
        yield from _PIECE.findall(text)


def _variants(word: str) -> Iterator[str]:
    """Return a word, and what of it can be a path: of `--file=a`, `-fa`, `@a`, `./a`."""
    yield word
    stripped = word.strip()
    if stripped != word:
        yield stripped
    if "=" in word:
        yield word.partition("=")[2]
    if word.startswith("@"):
        yield word[1:]
    if word.startswith("-") and len(word) > 2:
        yield word[2:]


def _plain(path: str) -> str:
    """Return a path in the words of a person: without `./` before it, and with their home."""
    while path.startswith("./"):
        path = path[2:].lstrip("/")
    return os.path.expanduser(path) if path.startswith("~") else path


def look(words: InputWords, cwd: str, hides: Callable[[str], bool]) -> dict[str, NamedFile]:
    """Return the files that words name, by their paths; blocks, at most `LOOK_S` of reading.

    Args:
        words: Of an input.
        cwd: Where relative paths begin.
        hides: Whether a text has something that must not be told.

    Raises:
        FilesUnclear: It takes too long, or there are too many directories.
    """
    until = time.monotonic() + LOOK_S
    looking = _OneLook(hides, until)
    found: dict[str, NamedFile] = {}
    bases = _bases(words.directories, cwd)
    for word in words.words:
        if time.monotonic() > until:
            raise FilesUnclear("its files could not be read in time")
        for path in dict.fromkeys(os.path.join(base, word) for base in bases):
            file = looking.file(word, path)
            if file is not None:
                found[path] = file
    return found


def _bases(directories: tuple[str, ...], cwd: str) -> list[str]:
    """Return the directories in which words may be files: one may be below another."""
    bases = [cwd]
    for name in directories:
        for base in list(bases):
            path = os.path.join(base, name)
            if path not in bases and os.path.isdir(path):
                bases.append(path)
        if len(bases) > MAX_DIRECTORIES:
            raise FilesUnclear(f"the input names more than {MAX_DIRECTORIES} directories")
    return bases


class _OneLook:
    """Reads the files of one look, each once."""

    def __init__(self, hides: Callable[[str], bool], until: float) -> None:
        self._hides, self._until = hides, until
        self._left = MAX_READ_BYTES
        self._known: dict[str, NamedFile] = {}

    def file(self, word: str, path: str) -> NamedFile | None:
        """Return the file at a path; `None` if there is no regular file."""
        try:
            if not stat.S_ISREG(os.stat(path).st_mode):
                return None
            real = os.path.realpath(path)
        except (OSError, ValueError):
            return None
        if real.startswith(_OF_THE_KERNEL):
            return None
        known = self._known.get(real)
        if known is None:
            known = self._known[real] = self._read(real)
        return msgspec.structs.replace(known, word=word)

    def _read(self, path: str) -> NamedFile:
        """Return what a file is now. It does not wait: neither for a pipe nor for a device."""
        try:
            descriptor = os.open(path, _FLAGS)
        except OSError:
            return _stamped(path, _status(path))
        try:
            status = os.fstat(descriptor)
            is_small = status.st_size <= min(MAX_FILE_BYTES, self._left)
            if not stat.S_ISREG(status.st_mode) or not is_small:
                return _stamped(path, status)
            return self._digested(path, descriptor, status)
        except OSError:
            return _stamped(path, _status(path))
        finally:
            os.close(descriptor)

    def _digested(self, path: str, descriptor: int, status: os.stat_result) -> NamedFile:
        digest, size = sha256(), 0
        kept = bytearray()
        while piece := os.read(descriptor, READ_BYTES):
            digest.update(piece)
            size += len(piece)
            self._left -= len(piece)
            if size <= MAX_SEARCHED_BYTES:
                kept += piece
            if size > MAX_FILE_BYTES or self._left < 0:  # it has grown meanwhile
                return _stamped(path, status)
            if time.monotonic() > self._until:
                raise FilesUnclear("its files could not be read in time")
        has_secret = size <= MAX_SEARCHED_BYTES and self._hides(kept.decode(errors="replace"))
        return NamedFile("", path, size, digest.hexdigest(), has_secret=has_secret)


def _status(path: str) -> os.stat_result | None:
    try:
        return os.lstat(path)
    except OSError:
        return None


def _stamped(path: str, status: os.stat_result | None) -> NamedFile:
    if status is None:
        return NamedFile("", path, 0)
    # The time of the last change of the inode cannot be set back by who owns the file.
    stamp = (status.st_dev, status.st_ino, status.st_mtime_ns, status.st_ctime_ns)
    return NamedFile("", path, status.st_size, stamp=stamp)


async def seen_files(
    tool_input: Json, cwd: str, hides: Callable[[str], bool], *, is_command: bool
) -> SeenFiles:
    """Return the files that an input names, without blocking the loop; see `look`."""

    def work() -> SeenFiles:
        words = words_of(tool_input, is_command=is_command)
        return SeenFiles(look(words, cwd, hides), frozenset(words.words))

    try:
        async with asyncio.timeout(2 * LOOK_S):
            return await asyncio.to_thread(work)
    except FilesUnclear as unclear:
        return SeenFiles({}, problem=str(unclear))
    except TimeoutError:  # a file system does not answer
        return SeenFiles({}, problem="its files could not be read in time")


def difference(before: SeenFiles, after: SeenFiles) -> str:
    """Return what has changed between two looks, for people; empty if nothing has.

    Who edits an input approves what only the edited one names, as it is then.
    """
    if before.problem or after.problem:
        return before.problem or after.problem
    paths = [path for path in {**before.files, **after.files} if _differs(path, before, after)]
    if not paths:
        return ""
    was, now = before.files.get(paths[0]), after.files.get(paths[0])
    if was is None or now is None:
        what = "vanished" if now is None else "appeared"
    else:
        what = "changed" if was.path == now.path else "leads to another file"
    file = was or now
    assert file is not None
    others = f" (and {len(paths) - 1} more)" * (len(paths) > 1)
    return f"{file.word}{others} {what} after it was shown"


def _differs(path: str, before: SeenFiles, after: SeenFiles) -> bool:
    was, now = before.files.get(path), after.files.get(path)
    if was is not None and now is not None:
        return not was.is_as(now)
    if was is not None:
        return was.word in after.words
    return now is not None and now.word in before.words


def recorded(seen: SeenFiles) -> list[JsonObject]:
    """Return what a fact says of files, each once."""
    facts: dict[str, JsonObject] = {}
    for file in seen.files.values():
        fact: JsonObject = {"path": file.path, "bytes": file.bytes}
        if file.sha256 and not file.has_secret:
            fact["sha256"] = file.sha256
        facts.setdefault(file.path, fact)
    return list(facts.values())[:MAX_RECORDED]


def mark_of(seen: SeenFiles) -> str:
    """Return a text that is the same for the same files; empty: they must be shown again.

    It is kept while the server is stopped. A file with a secret has none: who knows the rest of it
    could try secrets with it.
    """
    files = seen.files
    if seen.problem or any(one.has_secret for one in files.values()):
        return ""
    return sha256(msgspec.json.encode(sorted(files.items()))).hexdigest()


NO_FILES = mark_of(SeenFiles({}))
"""Of an input that names no file."""


class FileBinding:
    """Binds the answer to a permission request to what was shown: its input, and its files.

    Args:
        request: Of the runtime.
        cwd: Where its session works; empty: on another machine, so that no file is looked at.
        hides: Whether a text has something that must not be told.
    """

    def __init__(
        self, request: ari.PermissionRequest, cwd: str, hides: Callable[[str], bool]
    ) -> None:
        self.refusal = ""
        """Why an answer did not count; empty: it did, or there was none."""
        self._request, self._cwd, self._hides = request, cwd, hides
        self._shown = SeenFiles({})

    async def look(self) -> list[JsonObject]:
        """Look at the files of the request before it is shown, and return what a fact says."""
        self._shown = await self._seen(self._request.tool_input_raw)
        return recorded(self._shown)

    @property
    def mark(self) -> str:
        """What was looked at, as `mark_of` has it."""
        return mark_of(self._shown)

    async def again(self, approval: Approval) -> SecondLook:
        """Return whether an answer is about what is there now; an edited input has its own files.

        Cancel: Safe; nothing has changed.
        """
        if not approval.edited and not approval.covers(self._request.tool_input_raw):
            return self._refused("the input changed after it was shown", SeenFiles({}))
        seen = await self._seen(approval.args)
        changed = difference(self._shown, seen)
        if changed:
            return self._refused(changed, seen)
        return SecondLook(files=recorded(seen) if approval.edited else None)

    def _refused(self, why: str, seen: SeenFiles) -> SecondLook:
        self.refusal = f"{why}, so it was not run; ask again"
        return SecondLook(self.refusal, recorded(seen))

    async def _seen(self, tool_input: Json) -> SeenFiles:
        if not self._cwd:
            return SeenFiles({})
        is_command = self._request.kind is ari.PermissionKind.COMMAND
        return await seen_files(tool_input, self._cwd, self._hides, is_command=is_command)
