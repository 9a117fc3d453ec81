"""The formats of secrets: a *lead*, such as `token=`, and after it a *run*, which is the secret.

The lead is not secret. Only the run is removed, so the result does not depend on where a stream was
cut. A lead has a bounded length. A run consists of characters of one class, and its first `window`
characters decide whether it is a secret. So the time of a search is proportional to the length of
the text, for any text.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, TypeAlias

from msgspec import Struct

Verdict: TypeAlias = bool | None
"""`True`: a secret; `False`: not a secret; `None`: the text that follows decides."""

Decide: TypeAlias = Callable[["Shape", str, str, str | None], Verdict]
"""Arguments: shape, lead, run, and the character after the run; `None` if that is not yet known."""

_PLACEHOLDERS: Final = frozenset("$<*%{[…")
"""First characters of placeholders: `$TOKEN`, `<your token>`, `****`."""
_SYMBOLS: Final = frozenset("!#^~?*@%$+")
_NAMING: Final = re.compile(
    r"password|passwd|secret|token|key|your|string|example|required|placeholder|redacted|none|null"
    r"|undefined|getpass|environ|config|settings|prompt|input|value|await|self",
    re.IGNORECASE,
)
"""Words in names and placeholders, which are not secrets: `password=new_password`, `token: "your
token"`."""
_DOTTED: Final = re.compile(r"[A-Za-z_]\w*(?:\.\w+)+\Z")
_DASHES: Final = re.compile(r"-{1,5}E?N?\Z")
_KEY_BODY: Final = re.compile(r"[A-Za-z0-9+/=]{16}|Proc-Type:|Version:|Comment:")

_LETTERS: Final = "[A-Za-z0-9]"
_WORD: Final = "[A-Za-z0-9_-]"
_NAMES: Final = (
    r"(?i:pass(?:word|wd|phrase)|secret(?:[-_]?(?:access[-_]?)?key)?|token|credentials?"
    r"|(?:api|private|access|signing|account|encryption)[-_]?key)"
)
_BETWEEN: Final = r"\\?[\"']?[ \t]{0,3}(?:=>|[=:])[ \t]{0,3}"
_REST_OF_NAME: Final = "[A-Za-z_-]{0,16}"
"""Rest of a name after its first word."""


def _long_enough(shape: Shape, _lead: str, run: str, after: str | None) -> Verdict:
    """Accept a run of at least `least` characters."""
    if len(run) >= shape.least:
        return True
    return None if after is None else False


def _random(shape: Shape, _lead: str, run: str, after: str | None) -> Verdict:
    """Accept a long run that has a digit, or a capital after the first letter. It is not a word."""
    if len(run) >= shape.least and (_has_digit(run) or _has_inner_capital(run)):
        return True
    return None if after is None else False


def _signed(shape: Shape, _lead: str, run: str, after: str | None) -> Verdict:
    """Accept a JSON Web Token: parts separated by dots."""
    head, _, rest = run.partition(".")
    if len(head) >= 8 and len(rest) >= shape.least:
        return True
    return None if after is None else False


def _before_host(_shape: Shape, _lead: str, run: str, after: str | None) -> Verdict:
    """Accept a password: the run between `://user:` and `@`."""
    if after is None:
        return False if run.isdigit() and len(run) <= 5 else None  # most likely a port
    return bool(run) and after == "@"


def _alone_before_host(shape: Shape, _lead: str, run: str, after: str | None) -> Verdict:
    """Accept a token between `://` and `@`."""
    if after is None:
        return None
    return len(run) >= shape.least and after == "@"


def _quoted(shape: Shape, _lead: str, run: str, after: str | None) -> Verdict:
    """Accept a quoted value unless it is a placeholder or the name of a secret."""
    if after is None and len(run) < shape.window:
        return None
    if len(run) < shape.least or _is_placeholder(run):
        return False
    return _is_no_word(run) or not _NAMING.search(run)


def _assigned(shape: Shape, lead: str, run: str, after: str | None) -> Verdict:
    """Accept an unquoted value. After `=` without spaces it may also be a word, otherwise not."""
    if after is None and len(run) < shape.window:
        return None
    # A bracket follows the name of a function or a list in source code: `token = make_token(`.
    if len(run) < shape.least or _is_placeholder(run) or after in ("(", "["):
        return False
    # An attribute such as `settings.api_key` only names a secret.
    if _DOTTED.match(run) and _NAMING.search(run):
        return False
    is_narrow = lead.endswith("=") and not lead[-2:-1].isspace()
    # A short number after spaces may be a count.
    if _is_no_word(run):
        return is_narrow or not run.isdigit() or len(run) >= 8
    return is_narrow and len(run) >= 8 and run.isalpha() and not _NAMING.search(run)


def _cookies(shape: Shape, _lead: str, run: str, after: str | None) -> Verdict:
    """Accept cookies: a long enough run with a `=`."""
    if len(run) >= shape.least and "=" in run:
        return True
    return None if after is None else False


def _key_block(_shape: Shape, _lead: str, run: str, after: str | None) -> Verdict:
    """Accept the text after the first line of a key, unless prose only mentions such a line."""
    # In a JSON text, the line break before the key is written as a backslash and a letter.
    body = run.lstrip("\\nr \t\r\n")
    if _KEY_BODY.match(body):
        return True
    return None if after is None and len(body) < 24 else False


def _is_placeholder(run: str) -> bool:
    """Return whether a run begins like a placeholder or repeats one or two characters."""
    return run[:1] in _PLACEHOLDERS or len(set(run)) < 3


def _is_no_word(run: str) -> bool:
    return _has_digit(run) or not _SYMBOLS.isdisjoint(run)


def _has_digit(run: str) -> bool:
    return any(character.isdigit() for character in run)


def _has_inner_capital(run: str) -> bool:
    inner = run[1:]
    return inner not in (inner.lower(), inner.upper())


class Shape(Struct, frozen=True):
    """The format of one kind of secret."""

    rule: str
    """Name of the rule in facts."""
    begins: str
    """Possible beginnings of the lead, separated by spaces."""
    lead: str
    """Regular expression for the lead; its matches have a bounded length."""
    body: str
    """Regular expression for a run of any length. Matching can resume at any position of a run."""
    least: int
    """Length of the shortest secret of this kind."""
    decide: Decide = _long_enough
    """Function that decides whether a run is a secret."""
    window: int = 64
    """Number of characters after which an undecided run is not a secret."""
    is_word: bool = True
    """Whether the lead must begin a word. If so, `sk-` is not found in `risk-`."""
    soon: str = ""
    """Regular expression for the text directly after `begins`. It must match wherever the lead
    matches. It rejects most texts that begin like a lead without trying the lead."""
    ends_in_dashes: bool = False
    """Whether the run ends before `-----END`. If so, a run that is cut off at a dash may continue.
    """

    def may_continue(self, text: str, end: int) -> bool:
        """Return whether a run that ends at `end` could continue in the text that follows."""
        return end == len(text) or (self.ends_in_dashes and _DASHES.match(text, end) is not None)


def _token(rule: str, begins: str, characters: str, least: int) -> Shape:
    """Return the shape of tokens with one of several prefixes; a word is not such a token."""
    lead = "|".join(map(re.escape, begins.split()))
    return Shape(rule, begins, f"(?:{lead})", f"{characters}*", least, _random)


def _each_case(words: str) -> str:
    """Return words in lower case, with a first capital, and in upper case."""
    return f"{words} {words.title()} {words.upper()}"


_NAMED: Final = _each_case(
    "pass secret token credential api private access signing account encryption"
)

SHAPES: Final[tuple[Shape, ...]] = (
    Shape(
        "private-key",
        "-----BEGIN",
        r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----",
        r"[^-]*(?:-(?!-{0,4}(?:END|E?N?\Z))[^-]*)*",
        1,
        _key_block,
        window=128,
        is_word=False,
        ends_in_dashes=True,
    ),
    Shape(
        "api-key",
        "sk-",
        r"sk-(?:proj-|svcacct-|admin-|or-v1-|ant-(?:[a-z]{3,5}[0-9]{2}-)?)?",
        f"{_WORD}*",
        20,
        _random,
    ),
    _token("api-key", "pk_live_ pk_test_ rk_live_ rk_test_ sk_live_ sk_test_ whsec_", _LETTERS, 16),
    _token("api-key", "gsk_ hf_ npm_ r8_ fw_ ntn_ lin_api_ dop_v1_ shpat_ shpss_", _LETTERS, 20),
    _token(
        "api-key", "figd_ dckr_pat_ xai- nvapi- tvly- pplx- glpat- gldt- PMAK- pypi-", _WORD, 20
    ),
    _token("api-key", "SG.", "[A-Za-z0-9_.-]", 40),
    Shape("github-token", "ghp_ gho_ ghu_ ghs_ ghr_", r"gh[pousr]_", f"{_LETTERS}*", 30),
    Shape("github-token", "github_pat_", r"github_pat_", "[A-Za-z0-9_]*", 22),
    Shape("arp-token", "arp_", r"arp_[0-9a-f]{12}_", f"{_WORD}*", 40),
    Shape("slack-token", "xox", r"xox[abeoprs]-", "[A-Za-z0-9-]*", 10),
    Shape("slack-webhook", "hooks.slack.com", r"hooks\.slack\.com/services/", "[A-Za-z0-9/]*", 20),
    Shape("aws-key-id", "AKIA ASIA", r"A[KS]IA", "[A-Z0-9]*", 16),
    _token("google-key", "AIz", _WORD, 32),
    _token("google-token", "ya29", "[A-Za-z0-9_.-]", 20),
    Shape(
        "json-web-token", "eyJ", r"eyJ(?<![._-]eyJ)", r"[A-Za-z0-9_.-]*", 16, _signed, window=2048
    ),
    Shape(
        "authorization",
        _each_case("authorization"),
        r"(?i:authorization)\\?[\"']?[ \t]{0,3}[=:][ \t]{0,3}\\?[\"']?(?:[A-Za-z]{3,12}[ ]{1,3})?",
        r"[A-Za-z0-9._~+/=:-]*",
        8,
        _random,
    ),
    Shape(
        "authorization",
        "Bearer BEARER Basic",
        r"(?:Bearer|BEARER|Basic)[ ]{1,3}",
        r"[A-Za-z0-9._~+/=-]*",
        12,
        _random,
    ),
    Shape(
        "cookie",
        _each_case("cookie"),
        r"(?i:cookie):[ \t]{0,3}",
        r"[^\r\n\"'<>\[]*",
        8,
        _cookies,
        is_word=False,
    ),
    Shape(
        "url-credentials",
        "://",
        r"://[^\s/:@\"'<>]{0,64}:",
        r"[^\s/@\"'<>\[]*",
        1,
        _before_host,
        256,
        is_word=False,
    ),
    Shape(
        "url-credentials",
        "://",
        r"://",
        r"[^\s/:@\"'<>.\[]*",
        16,
        _alone_before_host,
        256,
        is_word=False,
    ),
    Shape(
        "url-signature",
        "?sig &sig ?Sig &Sig ?key= &key= ?X-Amz-S &X-Amz-S ?X-Goog-S &X-Goog-S",
        r"[?&](?:(?:X-(?:Amz|Goog)-S|[Ss])ig(?:nature)?|key)=",
        r"[A-Za-z0-9%._~+/=-]*",
        12,
        _random,
        is_word=False,
    ),
    Shape(
        "assignment",
        _NAMED,
        rf"{_NAMES}{_BETWEEN}\\?[\"']",
        r"[^\"'\\\r\n\[]*",
        4,
        _quoted,
        256,
        is_word=False,
        soon=_REST_OF_NAME + _BETWEEN,
    ),
    Shape(
        "assignment",
        _NAMED,
        rf"{_NAMES}{_BETWEEN}",
        r"[^\s\"'&,;<>()\[\]{}\\|]*",
        5,
        _assigned,
        is_word=False,
        soon=_REST_OF_NAME + _BETWEEN,
    ),
)
"""All shapes, in the order of trying them at one position."""

SIGNS: Final = "-_=:/AJz9BG"
"""The end of every lead contains one of these characters, so a text without them completes no lead.
"""

UNFINISHED: Final = r"(?:B[A-Za-z]{0,5}|SG)\Z"
"""End of a text that may be the beginning of `Bearer`, `Basic` or `SG.`. The rest of these leads
may have no sign, so the text that follows must be searched."""

UNFINISHED_MOST: Final = 6
"""Number of characters of the longest match of `UNFINISHED`."""
