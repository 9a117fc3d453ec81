"""Error texts for turns that fail because of a model, its provider or a framework.

The text of an exception of the author's code is not shown, because it may be confidential. The
exceptions of a model's server, its client or a framework have texts for people, which are shown.
"""

from __future__ import annotations

import json
import re
import traceback
from collections.abc import Iterator
from typing import Any, Final

from arp.net.http_problems import answer_problem, broken_connection, message_in, one_line
from arp.runtime.contract.errors import (
    AriError,
    DeadlineExceeded,
    InvalidArgument,
    OperationDenied,
    RuntimeInternal,
    Unavailable,
)

LIBRARIES: Final = frozenset(
    (
        "pydantic_ai", "agents", "openai", "anthropic", "langchain", "langchain_core",
        "langchain_openai", "langchain_anthropic", "langgraph", "httpx", "httpx2", "google",
        "mistralai", "groq", "cohere", "botocore", "litellm",
    )
)  # fmt: skip
"""Clients of models, and frameworks. The texts of their exceptions are written for people."""
_NO_ANSWER: Final = re.compile(
    r"ended without content|No generation chunks|No generations|empty model response",
    re.IGNORECASE,
)
"""Texts of frameworks that mean that the model gave no answer."""
NO_ANSWER: Final = (
    "the model gave no answer; check the model's name and address: a page may have come in the "
    "place of a stream"
)
_TOO_LONG: Final = re.compile(r"finish_reason='length'|token limit \(.*\) exceeded", re.IGNORECASE)
TOO_LONG: Final = (
    "the model reached its limit of output tokens before it said anything; raise the limit "
    "(max_tokens), or ask for less"
)
BLOCKED: Final = "the model's provider blocked the answer (content filter); ask in other words"
_BODY: Final = re.compile(r", body:\n.*", re.DOTALL)
_HELPER_LIBRARIES: Final = frozenset(("pydantic", "pydantic_core", "json"))
"""Libraries that raise exceptions when one of `LIBRARIES` calls them."""
MAX_CAUSES: Final = 10


def error_of_model(http_status: int, message: str) -> AriError:
    """Return the error for an HTTP status of a model's server."""
    if http_status in (401, 403):
        return OperationDenied(f"{message}; check the API key", http_status=http_status)
    is_busy = http_status in (408, 409, 429) or http_status >= 500
    kind = Unavailable if is_busy else InvalidArgument
    return kind(message, http_status=http_status)


def known_error(failed: Exception) -> AriError | None:
    """Return the error that people see for a failed turn; `None` if the author's code raised it."""
    if isinstance(failed, AriError):
        return failed
    if (refusal := _refusal(failed)) is not None:
        return OperationDenied(f"the model refused: {refusal}" if refusal else BLOCKED)
    library = _library_of(failed)
    if not library:
        return None
    if (status := _status(failed)) is not None:
        return error_of_model(status, _answer(failed, status))
    if broken := broken_connection(failed):
        return Unavailable(f"the model gave no whole answer: {broken}")
    if isinstance(failed, TimeoutError):
        return DeadlineExceeded(one_line(str(failed)) or "the model did not answer in time")
    if isinstance(failed, UnicodeDecodeError):
        return Unavailable("the model's server sent bytes that are no UTF-8; ask again")
    said = _own_words(failed)
    if _NO_ANSWER.search(said):
        return Unavailable(NO_ANSWER)
    if _TOO_LONG.search(said):
        return InvalidArgument(TOO_LONG, limit="tokens")
    if _root(type(failed).__module__) not in LIBRARIES:
        said = f"{library} could not go on: {said}; the server's log has the details"
    return RuntimeInternal(said)


def is_explained(failed: Exception, known: AriError | None) -> bool:
    """Return whether the text for people says what to do, so that no traceback is needed."""
    if known is None:
        return False
    return not isinstance(known, RuntimeInternal) or (
        isinstance(failed, AriError) or _root(type(failed).__module__) in LIBRARIES
    )


def _own_words(failed: Exception) -> str:
    """Return the text of an exception without the response that some frameworks append to it."""
    said = message_in(getattr(failed, "body", None)) if _is_of_client(failed) else ""
    said = f"the model's server said: {said}" if said else ""
    said = said or one_line(_BODY.sub("", str(failed))) or type(failed).__name__
    asked = getattr(failed.__cause__ or failed.__context__, "tool_retry", None)
    # Pydantic AI asked the model in vain to repeat its output; this text says what was wrong.
    why = getattr(asked, "content", None)
    return f"{said}: {one_line(why)}" if isinstance(why, str) else said


def _refusal(failed: Exception) -> str | None:
    """Return a model's refusal, `""` if a filter blocked the answer, or `None` for other errors."""
    name = type(failed).__name__
    if name == "ModelRefusalError":
        return one_line(str(getattr(failed, "refusal", "")))
    if name != "ContentFilterError":
        return None
    try:
        responses = json.loads(getattr(failed, "body", None) or "[]")
        details = [one.get("provider_details") or {} for one in responses]
    except (ValueError, AttributeError, TypeError):
        details = []
    return one_line(next((str(one["refusal"]) for one in details if one.get("refusal")), ""))


def _status(failed: Exception) -> int | None:
    """Return the error status of a model's server, 300 or above; `None` if there is none."""
    for one in _causes(failed):
        answered = getattr(one, "response", None)
        for place in (one, answered):
            status = getattr(place, "status_code", None)
            if isinstance(status, int) and status >= 300:
                return status
    return None


def _answer(failed: Exception, status: int) -> str:
    """Return the text for an error of a model's server, with the server's message if it has one."""
    headers: dict[str, str] = {}
    body = ""
    for one in _causes(failed):
        answered = getattr(one, "response", None)
        headers = headers or dict(getattr(answered, "headers", None) or {})
        body = body or message_in(getattr(one, "body", None) or getattr(one, "details", None))
    url = _url_of(failed)
    lower = {str(name).lower(): str(value) for name, value in headers.items()}
    said = answer_problem(status, lower, body.encode(), url, who="the model's server")
    wait = lower.get("retry-after", "")
    return f"{said} (try again in {wait} s)" if wait.isdecimal() else said


def _url_of(failed: Exception) -> str:
    for one in _causes(failed):
        response: Any = getattr(one, "response", None)
        if response is not None and getattr(response, "url", None) is not None:
            return str(response.url)
    return ""


def _library_of(failed: Exception) -> str:
    """Return the name in `LIBRARIES` that defines or raised an exception; otherwise `""`."""
    defined_in = _root(type(failed).__module__)
    if defined_in in LIBRARIES:
        return defined_in
    if defined_in not in ("builtins", "pydantic_core", "json"):
        return ""
    # A `ValueError` may come from a framework or from the author's code. The frame that raised it
    # decides: the author's text must not be shown.
    frames = [frame for frame, _ in traceback.walk_tb(failed.__traceback__)]
    roots = (_root(str(frame.f_globals.get("__name__", ""))) for frame in reversed(frames))
    raised_in = next((root for root in roots if root not in _HELPER_LIBRARIES), "")
    return raised_in if raised_in in LIBRARIES else ""


def _is_of_client(failed: Exception) -> bool:
    return hasattr(failed, "request") or hasattr(failed, "model_name")


def _root(module: str) -> str:
    return module.partition(".")[0]


def _causes(failed: BaseException | None) -> Iterator[BaseException]:
    for _ in range(MAX_CAUSES):
        if failed is None:
            return
        yield failed
        failed = failed.__cause__
