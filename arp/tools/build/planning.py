"""Finds an existing tool for a request in words, or writes the spec of a task.

No model is called: words are compared, and the URL of a repository is recognised. A caller that
wants another plan passes a spec.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from hashlib import sha256
from typing import Final

from arp.tools.registry.models import ToolMeta, ToolState, ToolStatus
from arp.tools.tasks.task_specs import BuildTool, GithubDeploy, TaskSpec

ENOUGH: Final = 0.6
"""Share of a request's words that a tool must match."""
MAX_NAME_WORDS: Final = 4
"""Maximum number of words in a name that is made from a request."""

_NO_MEANING: Final = frozenset(
    re.findall(
        r"\S+",
        "a an and are as at be by can could create do every for from give have i in into is it its "
        "let like make me my need needs new of on one or our please service should so some "
        "something such that the there this to tool tools want we which with would write you your "
        "build deploy",
    )
)
"""Words that are ignored in the comparison."""
_NO_MEANING_IN_CHINESE: Final = re.compile("需要|一个|工具|编写|请|的|给|我|做|个|写")
_ADDRESS: Final = re.compile(r"https://[^\s<>\"'()\[\]\u3000-\u303f\uff00-\uffef]+")
_WORD: Final = re.compile(r"[a-z0-9]+")
_ENDINGS: Final = ("ation", "ions", "ion", "ing", "or", "er", "ed", "es", "s", "e")
"""Endings that are removed before the comparison: `compresses` and `compression` are equal then."""
_LEAST_STEM: Final = 4


def existing_tool(description: str, tools: Iterable[ToolMeta]) -> ToolMeta | None:
    """Return the active tool that matches a request; `None` if none matches.

    If the id of a tool occurs in the request, the tool matches, whatever the other words are. A
    degraded tool is returned only if no other tool matches.
    """
    by_health: tuple[list[ToolMeta], list[ToolMeta]] = ([], [])
    for tool in tools:
        if tool.status is ToolStatus.ACTIVE:
            by_health[tool.scheduling.state is ToolState.DEGRADED].append(tool)
    healthy, degraded = by_health
    return _best_match(description, healthy) or _best_match(description, degraded)


def _best_match(description: str, tools: Iterable[ToolMeta]) -> ToolMeta | None:
    """Return the tool that matches a request best; `None` if none matches."""
    words_of_request = _terms_of(description)
    best, most = None, 0.0
    for tool in tools:
        if re.search(rf"(?<![\w-]){re.escape(tool.tool_id)}(?![\w-])", description):
            return tool
        words = _terms_of(" ".join((tool.tool_id, tool.name, tool.description)))
        covered = len(words_of_request & words) / len(words_of_request) if words_of_request else 0.0
        if covered > most:
            best, most = tool, covered
    return best if most >= ENOUGH else None


def spec_for(description: str, git_hosts: Sequence[str], *, has_docker: bool) -> TaskSpec:
    """Return the spec of a task for a request.

    Args:
        description: Request in words.
        git_hosts: Hosts from which repositories may be cloned. If the request contains the URL of a
            repository on one of them, the task is to deploy this repository.
        has_docker: Whether containers are available.
    """
    for address in _ADDRESS.findall(description):
        url = address.rstrip(".,;:!?/")
        host, _, path = url.removeprefix("https://").partition("/")
        if host.lower() in git_hosts and path.count("/") >= 1:
            name = path.split("/")[1].removesuffix(".git")
            runtime = "docker" if has_docker else "uv"
            return GithubDeploy(url, name_for(name), runtime, description=description)
    return BuildTool(name_for(description), "uv", description)


def name_for(description: str) -> str:
    """Return a tool id made of the first meaningful words of a request.

    If the request has no usable words, for example in another script, the id is made of its digest.
    """
    plain = unicodedata.normalize("NFKD", description).encode("ascii", "ignore").decode().lower()
    words = [word for word in _WORD.findall(plain) if word not in _NO_MEANING]
    name = "_".join(words[:MAX_NAME_WORDS])[:60].strip("_")
    return name or f"tool_{sha256(description.encode()).hexdigest()[:8]}"


def _terms_of(text: str) -> set[str]:
    """Return the parts of a text to compare: stems of words, and pairs of Chinese characters."""
    lower = unicodedata.normalize("NFKC", text).lower()
    words = {_stem(word) for word in _WORD.findall(lower) if word not in _NO_MEANING}
    spaced = _NO_MEANING_IN_CHINESE.sub(" ", lower)
    for run in re.findall(r"[\u3400-\u9fff\u3040-\u30ff\uac00-\ud7af]+", spaced):
        words |= {run[at : at + 2] for at in range(max(1, len(run) - 1))}
    return words


def _stem(word: str) -> str:
    """Return a word without its endings, if enough of it remains."""
    while True:
        ending = next((one for one in _ENDINGS if word.endswith(one)), "")
        is_plural = ending != "s" or not word.endswith("ss")
        if not ending or not is_plural or len(word) - len(ending) < _LEAST_STEM:
            return word
        word = word.removesuffix(ending)
