"""What secrets look like: a *lead* that is none itself, behind it the secret, of known characters.

Only what stands behind the lead is taken out, so it makes no difference at which character a stream
was cut. A lead has a bounded length, a secret is one run of one class of characters, and whether a
run is taken for a secret is decided by its first `window` characters. So the work grows with the
length of the text alone, whatever the text is.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, TypeAlias

from msgspec import Struct

Verdict: TypeAlias = bool | None
"""It is a secret, it is none, or what follows decides."""

Decide: TypeAlias = Callable[["Shape", str, str, str | None], Verdict]
"""Takes the shape, the lead, the run and the character behind it: `None`: that is not known yet."""

_PLACEHOLDERS: Final = frozenset("$<*%{[…")
"""`$TOKEN`, `<your token>`, `****`: where a secret would stand."""
_SYMBOLS: Final = frozenset("!#^~?*@%$+")
_NAMING: Final = re.compile(
    r"password|passwd|secret|token|key|your|string|example|required|placeholder|redacted|none|null"
    r"|undefined|getpass|environ|config|settings|prompt|input|value|await|self",
    re.IGNORECASE,
)
"""Words that name a secret, or a place for one: `password=new_password`, `token: "your token"`."""
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
"""What names go on with behind the words that they begin with."""


def _long_enough(shape: Shape, _lead: str, run: str, after: str | None) -> Verdict:
    if len(run) >= shape.least:
        return True
    return None if after is None else False


def _random(shape: Shape, _lead: str, run: str, after: str | None) -> Verdict:
    """Long enough, and no word of any language: it has a digit, or a capital inside."""
    if len(run) >= shape.least and (_has_digit(run) or _has_inner_capital(run)):
        return True
    return None if after is None else False


def _signed(shape: Shape, _lead: str, run: str, after: str | None) -> Verdict:
    """A JSON Web Token: parts with dots between."""
    head, _, rest = run.partition(".")
    if len(head) >= 8 and len(rest) >= shape.least:
        return True
    return None if after is None else False


def _before_host(_shape: Shape, _lead: str, run: str, after: str | None) -> Verdict:
    """What stands between `://user:` and `@`."""
    if after is None:
        return False if run.isdigit() and len(run) <= 5 else None  # most likely a port
    return bool(run) and after == "@"


def _alone_before_host(shape: Shape, _lead: str, run: str, after: str | None) -> Verdict:
    """A token between `://` and `@`."""
    if after is None:
        return None
    return len(run) >= shape.least and after == "@"


def _quoted(shape: Shape, _lead: str, run: str, after: str | None) -> Verdict:
    """The value of a name, in quotes: whatever does not say itself that it is none."""
    if after is None and len(run) < shape.window:
        return None
    if len(run) < shape.least or _is_placeholder(run):
        return False
    return _is_no_word(run) or not _NAMING.search(run)


def _assigned(shape: Shape, lead: str, run: str, after: str | None) -> Verdict:
    """A value without quotes: of any kind behind a narrow `=`, else only what is no word."""
    if after is None and len(run) < shape.window:
        return None
    if len(run) < shape.least or _is_placeholder(run) or after in ("(", "["):
        return False
    if _DOTTED.match(run) and _NAMING.search(run):
        return False
    is_narrow = lead.endswith("=") and not lead[-2:-1].isspace()
    if _is_no_word(run):
        return is_narrow or not run.isdigit() or len(run) >= 8
    return is_narrow and len(run) >= 8 and run.isalpha() and not _NAMING.search(run)


def _cookies(shape: Shape, _lead: str, run: str, after: str | None) -> Verdict:
    if len(run) >= shape.least and "=" in run:
        return True
    return None if after is None else False


def _key_block(_shape: Shape, _lead: str, run: str, after: str | None) -> Verdict:
    """What stands behind the first line of a key, unless that is only talked about."""
    body = run.lstrip("\\nr \t\r\n")
    if _KEY_BODY.match(body):
        return True
    return None if after is None and len(body) < 24 else False


def _is_placeholder(run: str) -> bool:
    return run[:1] in _PLACEHOLDERS or len(set(run)) < 3


def _is_no_word(run: str) -> bool:
    return _has_digit(run) or not _SYMBOLS.isdisjoint(run)


def _has_digit(run: str) -> bool:
    return any(character.isdigit() for character in run)


def _has_inner_capital(run: str) -> bool:
    inner = run[1:]
    return inner not in (inner.lower(), inner.upper())


class Shape(Struct, frozen=True):
    """One kind of secret."""

    rule: str
    """What facts call it."""
    begins: str
    """The texts with which the lead may begin, with spaces between."""
    lead: str
    """A regular expression of bounded length."""
    body: str
    """A regular expression that matches a run of any length, character by character."""
    least: int
    """Characters of the shortest secret of the kind."""
    decide: Decide = _long_enough
    window: int = 64
    """A run is no secret if so many characters did not show it."""
    is_word: bool = True
    """The lead begins a word: `sk-` does not stand in `risk-`."""
    soon: str = ""
    """A regular expression that matches behind those texts wherever the lead matches: most texts
    that begin like a lead are none, and this tells so before the lead is looked at."""
    ends_in_dashes: bool = False
    """The run ends before `-----END`, so where a text is cut behind a dash it may still go on."""

    def may_go_on(self, text: str, place: int) -> bool:
        """Return whether a run that ends at a place goes on if the text does."""
        return place == len(text) or (
            self.ends_in_dashes and _DASHES.match(text, place) is not None
        )


def _token(rule: str, begins: str, characters: str, least: int) -> Shape:
    """Return tokens that begin with one of some texts, and are no words."""
    lead = "|".join(map(re.escape, begins.split()))
    return Shape(rule, begins, f"(?:{lead})", f"{characters}*", least, _random)


def _each_case(words: str) -> str:
    """Return words as they are written: small, with a capital, in capitals."""
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
"""Tried in this order where several begin at the same character."""

SIGNS: Final = "-_=:/AJz9BG"
"""In what ends any lead one of these stands; text that has none of them begins no secret."""

UNFINISHED: Final = r"(?:B[A-Za-z]{0,5}|SG)\Z"
"""The end of a text that may be such a lead but for what follows, which need not have a sign."""
