"""The files that the input of a tool call names, and whether they changed since they were shown.

Theory of operation. A person who approves `sh run.sh` approves the `run.sh` that exists when the
question is shown. So each word of the input that is the path of an existing file is looked up
before the question is shown, and again when the answer is "allow". If a file has changed, vanished
or appeared, or if its path leads to another file, the answer no longer fits and nothing runs.

A word that is not the path of a file costs one `stat` and binds nothing. Therefore all words are
tried, and no knowledge of interpreters and their options is needed. Names that only a shell makes
(variables, patterns, substitutions) and files that the input does not name are not found.
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

LOOK_S = 5.0
"""Seconds that one look-up may take; a file that takes longer counts as changed."""
MAX_WORDS = 100_000
"""Number of words of one input. A command on Linux has at most 128 KiB, which is 65,536 words."""
MAX_DIRECTORIES = 64
"""Number of directories that the words of one input are looked up in."""
MAX_FILE_BYTES = 16 << 20
"""Size of the largest file that is read; a larger one is identified by size, times and inode."""
MAX_READ_BYTES = 64 << 20
"""Bytes of all files that one look-up reads."""
MAX_SEARCHED_BYTES = 1 << 20
"""Size of the largest file that is searched for secrets; the whole content of a larger one cannot
be guessed."""
MAX_RECORDED = 100
"""Number of files that a fact lists."""
MAX_PATH = 4_096
MAX_NESTED = 4
"""Depth of nested commands in quotes: `bash -c "sh -c '…'"`."""
READ_BYTES = 1 << 20

COMMAND_NAMES = frozenset(("args", "argv", "cmd", "command", "commands", "script"))
"""Fields of an input that hold commands, even if the kind of the request is not `command`."""
_BEFORE_DIRECTORY = frozenset(("-C", "--cwd", "--directory", "--prefix", "cd", "pushd"))
"""Words that precede the name of a directory."""
_PIECE = re.compile(r"[^\s'\"`;&|<>(){}\[\]$,=:@]+")
_SPLITS = re.compile(r"[\s'\"`;&|<>()]")
_KERNEL_PATHS = ("/proc/", "/sys/")
"""File systems of the kernel. Their contents are generated when they are read, so they are
skipped."""
_OPEN_FLAGS = os.O_RDONLY | sum(
    getattr(os, name, 0) for name in ("O_NONBLOCK", "O_NOCTTY", "O_NOFOLLOW", "O_CLOEXEC")
)


class InputWords(NamedTuple):
    """Words of a tool input that may name files, or the directory of a command."""

    words: tuple[str, ...]
    """All words, each once; any of them may be the path of a file."""
    directories: tuple[str, ...]
    """Words that may name the directory of a command, in their order."""


class NamedFile(msgspec.Struct, frozen=True):
    """A file that a tool input names, as it was at one point in time."""

    word: str
    """Word in the input."""
    path: str
    """Path after all links are resolved."""
    bytes: int
    sha256: str = ""
    """SHA-256 of the content; empty if the file is too large or unreadable."""
    stamp: tuple[int, ...] = ()
    """Identity of a file without a digest: device, inode and times."""
    has_secret: bool = False
    """Whether the content has a secret. Its digest is then not published: a person who knows the
    rest of the content could use it to test guesses of the secret."""

    def is_as(self, other: NamedFile) -> bool:
        """Return whether both are the same file with the same content."""
        mine = (self.path, self.bytes, self.sha256, self.stamp)
        return mine == (other.path, other.bytes, other.sha256, other.stamp)


class SeenFiles(NamedTuple):
    """Result of one look-up."""

    files: dict[str, NamedFile]
    """Files, by the path that the input and its directories give."""
    words: frozenset[str] = frozenset()
    """Words that were looked up."""
    problem: str = ""
    """Reason why the look-up is incomplete; empty if it is complete."""


class FilesUnclear(Exception):
    """Raised if a look-up is incomplete; the text gives the reason for people."""


def words_of(tool_input: Json, *, is_command: bool) -> InputWords:
    """Return the words of an input.

    Args:
        tool_input: Input as the runtime gives it.
        is_command: Whether its texts are commands; otherwise only those in `COMMAND_NAMES` are.

    Raises:
        FilesUnclear: There are more than `MAX_WORDS`.
    """
    words: dict[str, None] = {}
    directories: dict[str, None] = {}
    for text, splits in _texts(tool_input, is_command):
        before = ""
        for word in _words(text) if splits else iter([text]):
            for one in map(_normalised, _variants(word)):
                if 0 < len(one) <= MAX_PATH and "\0" not in one:
                    words[one] = None
                    if before in _BEFORE_DIRECTORY or not splits or word is text:
                        directories[one] = None
            if len(words) > MAX_WORDS:
                raise FilesUnclear(f"the input has more than {MAX_WORDS:,} words")
            before = word
    return InputWords(tuple(words), tuple(directories))


def _texts(value: Json, is_command: bool) -> Iterator[tuple[str, bool]]:
    """Yield each text of a value in order, with field names, and whether it is a command."""
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
    """Yield the words of a command as a shell splits it, and smaller pieces of it."""
    yield text
    lexer = shlex.shlex(text, posix=True, punctuation_chars=True)
    lexer.whitespace_split, lexer.commenters = True, ""
    try:
        for token in lexer:
            yield token
            if depth < MAX_NESTED and token != text and _SPLITS.search(token):
                yield from _words(token, depth + 1)
    except ValueError:  # an unterminated quote: the smaller pieces below still cover the text
        pass
    if depth == 0:
        yield from _PIECE.findall(text)


def _variants(word: str) -> Iterator[str]:
    """Yield a word and the parts of it that can be a path, as in `--file=a`, `-fa`, `@a`."""
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


def _normalised(path: str) -> str:
    """Return a path without a leading `./`, and with `~` expanded."""
    while path.startswith("./"):
        path = path[2:].lstrip("/")
    return os.path.expanduser(path) if path.startswith("~") else path


def look(words: InputWords, cwd: str, hides: Callable[[str], bool]) -> dict[str, NamedFile]:
    """Return the files that an input names, by path. Blocks for up to about `LOOK_S`.

    Args:
        words: Words of an input.
        cwd: Directory of relative paths.
        hides: Returns whether a text has a secret.

    Raises:
        FilesUnclear: It takes too long, or there are too many directories.
    """
    until = time.monotonic() + LOOK_S
    looking = _LookUp(hides, until)
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
    """Return the directories to look words up in; each may be relative to another one."""
    bases = [cwd]
    for name in directories:
        for base in list(bases):
            path = os.path.join(base, name)
            if path not in bases and os.path.isdir(path):
                bases.append(path)
        if len(bases) > MAX_DIRECTORIES:
            raise FilesUnclear(f"the input names more than {MAX_DIRECTORIES} directories")
    return bases


class _LookUp:
    """Reads the files of one look-up, each once."""

    def __init__(self, hides: Callable[[str], bool], until: float) -> None:
        self._hides, self._until = hides, until
        self._left = MAX_READ_BYTES
        self._known: dict[str, NamedFile] = {}

    def file(self, word: str, path: str) -> NamedFile | None:
        """Return the file at a path; `None` if it is not a regular file."""
        try:
            if not stat.S_ISREG(os.stat(path).st_mode):
                return None
            real = os.path.realpath(path)
        except (OSError, ValueError):
            return None
        if real.startswith(_KERNEL_PATHS):
            return None
        known = self._known.get(real)
        if known is None:
            known = self._known[real] = self._read(real)
        return msgspec.structs.replace(known, word=word)

    def _read(self, path: str) -> NamedFile:
        """Return the current state of a file, without waiting for a pipe or a device."""
        # The file is identified through its descriptor: between `stat` and `open`, the path could
        # be replaced by another file, a pipe or a link.
        try:
            descriptor = os.open(path, _OPEN_FLAGS)
        except OSError:
            return _with_stamp(path, _status(path))
        try:
            status = os.fstat(descriptor)
            is_small = status.st_size <= min(MAX_FILE_BYTES, self._left)
            if not stat.S_ISREG(status.st_mode) or not is_small:
                return _with_stamp(path, status)
            return self._with_digest(path, descriptor, status)
        except OSError:
            return _with_stamp(path, _status(path))
        finally:
            os.close(descriptor)

    def _with_digest(self, path: str, descriptor: int, status: os.stat_result) -> NamedFile:
        digest, size = sha256(), 0
        kept = bytearray()
        while piece := os.read(descriptor, READ_BYTES):
            digest.update(piece)
            size += len(piece)
            self._left -= len(piece)
            if size <= MAX_SEARCHED_BYTES:
                kept += piece
            if size > MAX_FILE_BYTES or self._left < 0:  # the file has grown since `fstat`
                return _with_stamp(path, status)
            if time.monotonic() > self._until:
                raise FilesUnclear("its files could not be read in time")
        has_secret = size <= MAX_SEARCHED_BYTES and self._hides(kept.decode(errors="replace"))
        return NamedFile("", path, size, digest.hexdigest(), has_secret=has_secret)


def _status(path: str) -> os.stat_result | None:
    try:
        return os.lstat(path)
    except OSError:
        return None


def _with_stamp(path: str, status: os.stat_result | None) -> NamedFile:
    if status is None:
        return NamedFile("", path, 0)
    # The owner of a file can set back its modification time, but not its ctime.
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
    except TimeoutError:  # a file system does not respond
        return SeenFiles({}, problem="its files could not be read in time")


def difference(before: SeenFiles, after: SeenFiles) -> str:
    """Return what has changed between two look-ups, for people; empty if nothing has.

    A file that only an edited input names is approved in its current state.
    """
    if before.problem or after.problem:
        return before.problem or after.problem
    paths = [path for path in {**before.files, **after.files} if _has_changed(path, before, after)]
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


def _has_changed(path: str, before: SeenFiles, after: SeenFiles) -> bool:
    was, now = before.files.get(path), after.files.get(path)
    if was is not None and now is not None:
        return not was.is_as(now)
    if was is not None:
        return was.word in after.words
    return now is not None and now.word in before.words


def recorded(seen: SeenFiles) -> list[JsonObject]:
    """Return the files for a fact, each once."""
    facts: dict[str, JsonObject] = {}
    for file in seen.files.values():
        fact: JsonObject = {"path": file.path, "bytes": file.bytes}
        if file.sha256 and not file.has_secret:
            fact["sha256"] = file.sha256
        facts.setdefault(file.path, fact)
    return list(facts.values())[:MAX_RECORDED]


def mark_of(seen: SeenFiles) -> str:
    """Return a hash of the files' paths and contents; empty if the files must be shown again.

    The hash is stored, so that a later process can check that the files are the same. A file
    without a digest is identified by its `stamp`. The hash is empty if the look-up is incomplete or
    a file has a secret. A person who knows the rest of such a file could test guesses of the secret
    with a stored hash.
    """
    files = seen.files
    if seen.problem or any(one.has_secret for one in files.values()):
        return ""
    return sha256(msgspec.json.encode(sorted(files.items()))).hexdigest()


NO_FILES = mark_of(SeenFiles({}))
"""Mark of an input that names no file."""
