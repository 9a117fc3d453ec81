"""`arp serve` and `arp app-server`: serve an application over HTTP, other transports, or pipes."""

from __future__ import annotations

import errno
import logging
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click
import msgspec

from arp.commands.output import fail
from arp.commands.serve.serve_settings import ServeSettings, flag_of, parse_setting
from arp.commands.serve.serving_app import EVERYWHERE, ledger_name_of, load_application
from arp.protocol.framing.envelope import Dialect
from arp.server.application import Application
from arp.server.ending import leave
from arp.server.login.own_secrets import redact_logs
from arp.server.ports.pipes import reserve_stdout, serve_pipes
from arp.store.errors import StoreError, StoreLocked
from arp.store.location import SHARED, ledger_of

if TYPE_CHECKING:
    import socket

    from arp.access.settings import Access

DEFAULT_PORT = 8080
PORTS_TRIED = 20
"""Number of ports that `serve` tries, from the default port on, if the caller names none."""


def _configure_logging(verbose: int) -> None:
    """Log warnings (0), connections too (1), or frames too (2).

    Debug lines of libraries are never logged, because they may contain secrets.
    """
    level = logging.INFO if verbose else logging.WARNING
    logging.basicConfig(level=level, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    logging.getLogger("arp").setLevel(logging.DEBUG if verbose > 1 else level)


def serve_target(target: str | None, serving: ServeSettings) -> None:
    """Serve a target, a runtime or a model, over HTTP or to one renderer over pipes."""
    if [target, serving.runtime, serving.model].count(None) != 2:
        fail(
            "give exactly one of TARGET, --runtime and --model: arp serve app.py, "
            "--runtime claude-code, or --model openai:gpt-5"
        )
    _configure_logging(serving.verbose)
    if serving.stdio:
        if ports := serving.ports():
            named = " and ".join(map(flag_of, ports))
            fail(f"--stdio serves one renderer; leave {named} out")
        _serve_stdio(target, serving)
    else:
        _serve_http(target, serving)


def serve_control_plane(target: str, ledger: str | None, verbose: int) -> None:
    """Serve the control plane of a target's app to one program, over standard input and output."""
    _configure_logging(verbose)
    location = parse_setting("ledger", ledger, "--ledger") if ledger is not None else None
    _serve_stdio(target, ServeSettings(ledger=location, stdio=True), is_control=True)


def _serve_stdio(target: str | None, serving: ServeSettings, *, is_control: bool = False) -> None:
    output = reserve_stdout()
    application = load_application(target, serving)
    try:
        dialect = msgspec.convert(serving.dialect, Dialect)
        serve_pipes(
            application.state, sys.stdin.buffer, output, is_control=is_control, dialect=dialect
        )
    except StoreError as error:
        fail(str(error))
    leave(0)


def _serve_http(target: str | None, serving: ServeSettings) -> None:
    application = load_application(target, serving)
    serve_application(application, ledger_name_of(target, serving), serving)


def check_reachable(application: Application, host: str) -> None:
    """End with an error if others can reach the address and there is no access control."""
    from arp.server.serve import is_private

    tokens = application.state.guard.tokens
    is_open = application.state.served.access.is_open and not tokens.are_used()
    if not is_private(host) and is_open:
        fail(
            f"{host} can be reached by others: set --token (or ARP_TOKEN), create tokens (arp "
            "token create), let people sign in (--oidc-issuer), or give App an Access with an "
            "authenticate hook, or stay on 127.0.0.1"
        )


def serve_application(application: Application, name: str, serving: ServeSettings) -> None:
    """Serve an application over HTTP until a signal is received, then end the process.

    Args:
        application: The application.
        name: Name of its default ledger.
        serving: The settings.
    """
    # Imported here, so that --stdio starts without importing the HTTP server.
    from arp.commands.serve.serving_ports import open_ports, ready_lines
    from arp.server.serve import serve as run

    default_location = application.state.served.ledger if serving.ledger is None else ""
    host = serving.host
    access = application.state.served.access
    tokens = application.state.guard.tokens
    check_reachable(application, host)
    listener = bind_to(host, serving.port)
    try:
        ports = open_ports(application.state, serving)
    except BaseException:
        listener.close()
        raise
    port = listener.getsockname()[1]

    def ready() -> None:
        # Again, because the HTTP server has added its own log handlers.
        redact_logs(application.state.redaction())
        if serving.port is None and port != DEFAULT_PORT:
            click.echo(f"arp: Port {DEFAULT_PORT} is taken, so this is port {port}.", err=True)
        token = application.state.start_token
        click.echo(f"ARP on http://{in_address(host)}:{port}" + f"/#token={token}" * bool(token))
        for line in ready_lines(ports):
            click.echo(line)
        sys.stdout.flush()
        if default_location.startswith("sqlite:"):
            path = default_location.removeprefix("sqlite:")
            click.echo(f"arp: Sessions are kept in {path}.", err=True)
        for line in (
            *_hints(host, port, access, has_tokens=tokens.are_used()),
            *_own_code_hints(application),
        ):
            click.echo(f"arp: {line}", err=True)

    try:
        served = run(application, listener, ready, ports)
    except StoreLocked as error:
        if default_location != f"sqlite:{SHARED}":
            fail(str(error))
        own = ledger_of(name)
        # Once the file `own` exists, it is the default ledger of this app.
        fail(
            f"another server uses {SHARED}, where this app has sessions too; stop that one, or "
            f"give this one a ledger of its own, now and later: --ledger sqlite:{own}"
        )
    except StoreError as error:
        fail(str(error))
    leave(0 if served else 1)


def in_address(host: str) -> str:
    """Return a host as part of a URL: an IPv6 address in brackets."""
    return f"[{host}]" if ":" in host else host


def _hints(host: str, port: int, access: Access, *, has_tokens: bool) -> Iterator[str]:
    """Yield hints on how users get access; never with the token itself."""
    if host in EVERYWHERE and not access.hosts:
        yield "From other machines it answers only to names that you give with --allow-host NAME."
    # 0.0.0.0 and [::] are addresses to listen on; the hint needs one that a browser can open.
    here = "127.0.0.1" if host in EVERYWHERE else in_address(host)
    page = f"http://{here}:{port}/#token=…"
    if access.oidc is not None:
        yield f"People sign in at {access.oidc.issuer}."
    if access.token is not None:
        yield f"Users need the token: open {page} with the token instead of the dots."
    elif has_tokens and access.authenticate is None and access.oidc is None:
        yield f"Users need a token of arp token create: open {page} with it instead of the dots."


def _own_code_hints(application: Application) -> Iterator[str]:
    """Yield hints for an app with agents that run commands; never with the token itself."""
    state = application.state
    token = state.served.access.token
    if not state.served.runs_commands:
        return
    if state.start_token:
        yield (
            "Its agents run commands, so clients need the token of this start. Programs use the "
            "address above, or send Authorization: Bearer TOKEN."
        )
    elif state.served.access.is_open and not state.guard.tokens.are_used():
        yield (
            "Commands that its agents run can use this server, and can answer its questions in "
            "your place. Leave --no-token out, or set ARP_TOKEN."
        )
    elif token is not None and any(token in word for word in sys.argv):
        yield (
            "Its agents run commands, and can read the token in the list of processes. Set "
            "ARP_TOKEN instead of --token."
        )


def bind_to(host: str, port: int | None) -> socket.socket:
    """Return a listening socket.

    Args:
        host: Address to listen on.
        port: Port; `None` means the default port, or the next free one.
    """
    from arp.server.serve import bind

    ports = [port] if port is not None else range(DEFAULT_PORT, DEFAULT_PORT + PORTS_TRIED)
    for candidate in ports:
        try:
            listener = bind(host, candidate)
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                fail(f"cannot listen on {host}:{candidate}: {error.strerror}")
            continue
        return listener
    return fail(
        f"Port {ports[0]} is taken. Name another with --port, or take any free one with --port 0."
    )
