"""`arp token`: create, list and revoke the tokens of the server of a ledger."""

from __future__ import annotations

import re
import shutil
import sqlite3
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import click
import msgspec

from arp.access.tokens import IssuedToken, TokenFile, new_token_id
from arp.commands.output import CONTEXT, cut, fail, json_text, printable
from arp.store.errors import StoreError
from arp.store.location import DIRECTORY, ledger_to_read, tokens_of

UNITS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}

FOREVER: Final = "forever"

MAX_S: Final = 100 * 366 * UNITS["d"]
"""A hundred years; a longer time is a typing error."""

_DURATION: Final = re.compile(r"([0-9]{1,9})([smhdw])")

_LEDGER = click.option(
    "--ledger",
    envvar="ARP_LEDGER",
    help="The ledger of the server: sqlite:PATH, postgresql://…, or the target that is served "
    "(app.py).  [env: ARP_LEDGER; default: the one in .arp/]",
)


class Duration(click.ParamType):  # type: ignore[type-arg]  # newer versions of click have one
    """A time such as `30d`, converted to seconds; `None` means forever."""

    name = "time"

    def convert(
        self, value: str, param: click.Parameter | None, ctx: click.Context | None
    ) -> float | None:
        """Return the time in seconds, or `None` for forever."""
        match = _DURATION.fullmatch(value)
        seconds = int(match[1]) * UNITS[match[2]] if match else 0
        if value != FOREVER and not 0 < seconds <= MAX_S:
            self.fail(f"expected a time as 30d, 12h, 15m or 90s, or {FOREVER}, got {value!r:.40}")
        return None if value == FOREVER else float(seconds)


@click.group(context_settings=CONTEXT)
def token() -> None:
    r"""Manage the tokens that give users and programs access; each can expire and be revoked.

    Hashes of the tokens are stored beside the ledger. A server applies each change immediately.
    """


@token.command(context_settings=CONTEXT)
@click.option("--user", required=True, help="User that the token gives access to.")
@click.option(
    "--for",
    "duration",
    type=Duration(),
    default="30d",
    show_default=True,
    metavar="TIME",
    help=f"Validity of the token: 30d, 12h, 15m, 90s, or {FOREVER}.",
)
@click.option(
    "--role",
    "roles",
    multiple=True,
    help="Role of the user, for agents; admin may read all sessions. Repeatable.",
)
@click.option("--note", default="", help="Purpose of the token.")
@_LEDGER
def create(
    user: str, duration: float | None, roles: tuple[str, ...], note: str, ledger: str | None
) -> None:
    r"""Create a token and print it; it cannot be shown again.

    \b
      arp token create --user ann --for 30d
      arp token create --user ops --for 8h --role admin --ledger app.py
    """
    for name, text in (("--user", user), *(("--role", role) for role in roles)):
        if not text or not text.isprintable() or len(text) > 200:
            fail(f"{name}: expected a name of up to 200 printable characters")
    now = time.time()
    expires_at = None if duration is None else now + duration
    issued = IssuedToken(new_token_id(), user, now, expires_at, roles, note)
    path = _path(ledger)
    with _file_errors(path):
        text = TokenFile(path).create(issued)
    click.echo(text)
    until = FOREVER if expires_at is None else f"until {_time(expires_at)}"
    about = f"Token {issued.id} gives {printable(user)} access {until}; its hash is in {path}."
    click.echo(f"arp: {about}", err=True)
    if sys.stdout.isatty():
        click.echo("arp: Copy it now: it cannot be shown again.", err=True)


@token.command("list", context_settings=CONTEXT)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per line.")
@_LEDGER
def list_tokens(ledger: str | None, as_json: bool) -> None:
    """List the tokens, including expired and revoked ones, without their text."""
    path = _path(ledger)
    with _file_errors(path):
        tokens = TokenFile(path).tokens()
    if as_json:
        for one in tokens:
            click.echo(json_text(msgspec.json.encode(one)))
        return
    for line in table(tokens, time.time(), shutil.get_terminal_size((100, 24)).columns):
        click.echo(line)


@token.command(context_settings=CONTEXT)
@click.argument("token_ids", nargs=-1, metavar="ID…")
@click.option("--user", help="Revoke all tokens of a user.")
@_LEDGER
def revoke(token_ids: tuple[str, ...], user: str | None, ledger: str | None) -> None:
    r"""Revoke tokens; their open connections are closed within a second.

    `arp token list` shows the IDs.
    """
    if not token_ids and user is None:
        fail("give the ID of a token, as arp token list shows it, or --user NAME")
    path, now = _path(ledger), time.time()
    with _file_errors(path):
        tokens = TokenFile(path)
        known = {one.id: one for one in tokens.tokens()}
        wrong = [name for name in token_ids if name not in known]
        if wrong:
            fail(f"there is no token {wrong[0]!r:.40} in {path}; arp token list shows their ids")
        of_user = [one.id for one in known.values() if one.user == user and one.is_valid(now)]
        if user is not None and not of_user and not token_ids:
            fail(f"there is no valid token of user {user!r:.80} in {path}")
        for name in (*token_ids, *of_user):
            tokens.revoke(name, now)
            click.echo(f"revoked {name} of {printable(known[name].user)}")


def table(tokens: list[IssuedToken], now: float, width: int) -> list[str]:
    """Return tokens as lines for a terminal with `width` columns."""
    if not tokens:
        return ["no tokens"]
    user_width = max(len("USER"), *(len(printable(one.user)) for one in tokens))
    head = f"{'ID':12}  {'USER':{user_width}}  {'STATE':7}  {'EXPIRES':16}  "
    lines = [click.style(f"{head}ROLES, NOTE", bold=True)]
    for one in tokens:
        until = FOREVER if one.expires_at is None else _time(one.expires_at)
        start = f"{one.id}  {printable(one.user):{user_width}}  {one.state(now):7}  {until:16}  "
        end = " ".join(filter(None, (", ".join(map(printable, one.roles)), printable(one.note))))
        lines.append((start + cut(end, max(width - len(start), 20))).rstrip())
    return lines


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%MZ")


def _path(ledger: str | None) -> Path:
    """Return the path of the file with the tokens for a ledger, or end with an error."""
    try:
        path = tokens_of(ledger_to_read(ledger if ledger is not None else _only_ledger()))
    except StoreError as error:
        fail(str(error))
    if path is None:
        fail(
            "a ledger in memory has no tokens; serve the app with --ledger sqlite:PATH, or with "
            "--ledger postgresql://…"
        )
    return path


def _only_ledger() -> str:
    """Return the location of the only ledger in `.arp`, or end with an error."""
    found = sorted(DIRECTORY.glob("*.db"))
    if len(found) == 1:
        return f"sqlite:{found[0]}"
    if not found:
        fail("there is no ledger in .arp/ here; name it: --ledger app.py, or --ledger sqlite:PATH")
    names = ", ".join(map(str, found))
    return fail(f"there are several ledgers here ({names}); name one: --ledger sqlite:PATH")


@contextmanager
def _file_errors(path: Path) -> Iterator[None]:
    """End with an error if the file of the tokens cannot be used."""
    try:
        yield
    except (OSError, sqlite3.Error, msgspec.DecodeError) as error:
        fail(f"{path} cannot be used: {error}")
