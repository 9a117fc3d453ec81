"""The command line: `arp serve`, `arp connect`, `arp render`, `arp app-server`, and more.

What is configured is read here, once: a file, then the environment, then flags.
"""

from __future__ import annotations

import errno
import logging
import os
import sys
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click

from arp import __version__
from arp.commands.events import events
from arp.commands.evidence import evidence
from arp.commands.output import CONTEXT, fail
from arp.commands.replay import replay
from arp.commands.sessions import sessions

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Iterator

    from arp.access.settings import Access
    from arp.app import App
    from arp.protocol.component import Component
    from arp.server.application import Application
    from arp.server.settings import Serving

DEFAULT_PORT = 8080
PORTS_TRIED = 20
"""Ports after the default one that `serve` tries when that is taken and none was named."""
INTERRUPTED = 130
"""Exit code after Ctrl-C where nothing was going on: 128 + SIGINT, as shells have it."""


class _Commands(click.Group):
    """Says whatever is wrong in one line."""

    def add_command(self, cmd: click.Command, name: str | None = None) -> None:
        r"""Takes a command; where its help says `\b`, the lines below stay as they are."""
        cmd.help = (cmd.help or "").replace("\\b", "\b")
        super().add_command(cmd, name)

    def main(self, *args: Any, **options: Any) -> Any:
        """Runs a command; ends the process."""
        options["standalone_mode"] = False
        try:
            code = super().main(*args, **options)
        except click.exceptions.NoArgsIsHelpError as error:
            click.echo(error.format_message(), err=True)
            code = error.exit_code
        except click.UsageError as error:
            place = error.ctx.command_path if error.ctx is not None else "arp"
            text = error.format_message().rstrip(".")
            fail(f"{text}. See {place} --help.", error.exit_code)
        except click.ClickException as error:
            fail(error.format_message(), error.exit_code)
        except click.Abort:
            code = INTERRUPTED
        raise SystemExit(code if isinstance(code, int) else 0)


@click.group(
    cls=_Commands,
    context_settings=CONTEXT,
)
@click.version_option(__version__, message="arp %(version)s")
def main() -> None:
    """One agent, every screen: serve an agent, talk to one, draw what one says."""


@main.command(context_settings=CONTEXT)
@click.argument("target")
@click.option("--host", help="Address to listen on.  [default: 127.0.0.1]")
@click.option(
    "--port", type=click.IntRange(0, 65535), help="Port; 0 picks a free one.  [default: 8080]"
)
@click.option(
    "--ledger",
    help="Where facts live: memory: or sqlite:PATH.  [default: .arp/ and TARGET's name; app.py has "
    "sqlite:.arp/app.db]",
)
@click.option("--token", help="Whoever connects must have it.  [env: ARP_TOKEN]")
@click.option(
    "--origin", "origins", multiple=True, help="A web origin whose pages may connect. Repeatable."
)
@click.option(
    "--allow-host", "hosts", multiple=True, help="A name under which it is reached. Repeatable."
)
@click.option(
    "--trust-proxy",
    "trusted_proxies",
    multiple=True,
    help="A proxy in front that says whom it forwards for: an address or network. Repeatable.",
)
@click.option(
    "--no-redact", "redact", flag_value=False, default=None, help="Leave secrets in facts and logs."
)
@click.option(
    "--otel", is_flag=True, help="Export spans and metrics (OpenTelemetry; OTEL_… says where to)."
)
@click.option("--runtime-id", help="Name of this runtime in facts.  [default: the ledger's]")
@click.option("--stdio", is_flag=True, help="Talk to one renderer over standard input and output.")
@click.option(
    "--debug", is_flag=True, help="Show tracebacks to whoever is connected; on this machine alone."
)
@click.option(
    "--reload", is_flag=True, help="Start again when a Python file beside TARGET changes."
)
@click.option("--config", type=click.Path(path_type=Path), help="TOML file with a [serve] table.")
@click.option("-v", "--verbose", count=True, help="Log connections; twice: every frame.")
def serve(target: str, reload: bool, config: Path | None, **flags: Any) -> None:
    r"""Serve an agent to every screen.

    TARGET is a Python file or module that holds an App, optionally with its name:

    \b
      arp serve app.py
      arp serve app.py:explorer --port 0
      arp serve mypackage.agents --ledger sqlite:/var/lib/arp/ledger.db

    Several agents can be served side by side: each TARGET has a ledger of its own, and a server
    takes the next free port if 8080 is taken.

    Settings come from the file, then from ARP_HOST, ARP_PORT, ARP_LEDGER, ARP_TOKEN,
    ARP_RUNTIME_ID, then from flags.
    """
    if reload:
        from arp.server.reload import run_reloading

        arguments = [argument for argument in sys.argv[1:] if argument != "--reload"]
        raise SystemExit(run_reloading(arguments, target))
    serving = _settings(config, {name: flags[name] for name in flags if _is_given(name, flags)})
    _log(serving.verbose)
    if serving.stdio:
        _serve_stdio(target, serving)
    else:
        _serve_http(target, serving)


def _is_given(name: str, flags: dict[str, Any]) -> bool:
    """Tells whether a flag is on the command line: `--port 0`, `--token ""`, `--no-redact` are."""
    value = flags[name]
    return value is not None and (name in ("port", "token", "redact") or bool(value))


def _settings(config: Path | None, flags: dict[str, Any]) -> Serving:
    """Merges file < environment < flags, each checked where it stands."""
    from arp.server.settings import Serving

    found: dict[str, Any] = {}
    if config is not None:
        found |= _from_file(config)
    for name in ("host", "port", "ledger", "token", "runtime_id"):
        value = os.environ.get(f"ARP_{name.upper()}")
        if value:
            found[name] = _checked(name, value, f"ARP_{name.upper()}")
    for name, value in flags.items():
        plain = list(value) if isinstance(value, tuple) else value
        found[name] = _checked(name, plain, f"--{OUTSIDE.get(name, name)}")
    _check_debug(found)
    return Serving(**found)


def _check_debug(found: dict[str, Any]) -> None:
    """Refuses to show tracebacks where others than the author may be connected."""
    for name in REACHED_BY_OTHERS if found.get("debug") else ():
        if found.get(name):
            fail(
                "--debug shows tracebacks to whoever is connected, so it does not go with "
                f"--{OUTSIDE.get(name, name)}; leave one of the two out"
            )


def _from_file(config: Path) -> dict[str, Any]:
    try:
        whole = tomllib.loads(config.read_text(encoding="utf-8"))
    except OSError as error:
        fail(f"{config}: {error.strerror}")
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        fail(f"{config}: {error}")
    if whole and "serve" not in whole:
        fail(f"{config}: there is no [serve] table in it; write [serve] and the settings below it")
    table = whole.get("serve", {})
    if not isinstance(table, dict):
        fail(f"{config}: serve: expected a table; write [serve] and the settings below it")
    found: dict[str, Any] = {}
    for key, value in table.items():
        name: str = CONFIG_NAMES.get(key) or key
        several = [value] if name in SEVERAL and not isinstance(value, list) else value
        found[name] = _checked(name, several, f"{config}: [serve] {key}")
    return found


CONFIG_NAMES = {
    "origin": "origins",
    "allow-host": "hosts",
    "trust-proxy": "trusted_proxies",
    "runtime-id": "runtime_id",
}
"""Settings that are called otherwise inside."""

SEVERAL = ("origins", "hosts", "trusted_proxies")
"""In a file each may be one text or a list."""

OUTSIDE = {inside: name for name, inside in CONFIG_NAMES.items()}

REACHED_BY_OTHERS = ("host", "hosts", "trusted_proxies")
"""Settings by which people elsewhere can reach the server."""

EXPECTED = {
    "host": "an address",
    "port": "a number from 0 to 65535",
    "ledger": "memory: or sqlite:PATH",
    "token": "a text without spaces and control characters",
    "origins": "an origin without a path, as https://example.org",
    "hosts": "a host name without scheme and port, as agents.example.org",
    "trusted_proxies": "an address or a network, as 10.0.0.7 or 10.0.0.0/8",
    "redact": "true or false",
    "redaction": "a table of its own: [serve.redaction]",
    "otel": "true or false",
    "stdio": "true or false",
    "runtime_id": "a name of up to 128 characters without spaces",
    "debug": "true or false",
    "verbose": "0, 1 or 2",
}
"""What each setting takes, in words."""


def _checked(name: str, value: Any, where: str) -> Any:
    """Gives a setting's value in its type, or ends and says what is wrong with it."""
    import msgspec

    from arp.server.settings import Serving

    known = {field.name: field.type for field in msgspec.structs.fields(Serving)}
    if name not in known:
        listed = ", ".join(sorted(OUTSIDE.get(one, one) for one in known))
        fail(f"{where}: there is no such setting; there are {listed}")
    try:
        return msgspec.convert(value, known[name], strict=not isinstance(value, str))
    except msgspec.ValidationError as error:
        if name == "redaction":
            fail(f"{where}: {error}")
        got = "" if name == "token" else f", got {_plainly(value)!r:.60}"
        fail(f"{where}: expected {EXPECTED[name]}{got}")


def _plainly(value: Any) -> Any:
    """Gives the one thing in a list, which is what the user wrote."""
    return value[0] if isinstance(value, list) and len(value) == 1 else value


def _log(verbose: int) -> None:
    """Lets connections be logged, or every frame too; others' debug lines may hold secrets."""
    level = logging.INFO if verbose else logging.WARNING
    logging.basicConfig(level=level, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    logging.getLogger("arp").setLevel(logging.DEBUG if verbose > 1 else level)


def _application(target: str, serving: Serving) -> Application:
    import msgspec

    from arp.server.application import Application
    from arp.server.own_secrets import redact_logs

    app = _load(target)
    host = serving.host
    names = [] if host in EVERYWHERE else [f"[{host}]" if ":" in host else host]
    try:
        access = msgspec.structs.replace(
            app.access,
            token=serving.token or app.access.token,
            hosts=(*app.access.hosts, *names, *serving.hosts),
            origins=(*app.access.origins, *serving.origins),
            trusted_proxies=(*app.access.trusted_proxies, *serving.trusted_proxies),
        )
    except ValueError as error:
        fail(f"{_flag_behind(error, host)}: {error}")
    if serving.stdio:  # nobody reaches it by a name
        access = msgspec.structs.replace(access, hosts=())
    ledger = serving.ledger or app.ledger
    if ledger == "memory:" and serving.ledger is None and not serving.stdio:
        from arp.store.default_ledger import default_ledger

        ledger = f"sqlite:{default_ledger(target, app.handlers)}"
    redaction = serving.redaction or app.settings.redaction
    if not serving.redact:
        redaction = msgspec.structs.replace(redaction, enabled=False)
    telemetry = app.settings.telemetry or _telemetry(serving)
    settings = msgspec.structs.replace(
        app.settings,
        redaction=redaction,
        telemetry=telemetry,
        runtime_id=serving.runtime_id or app.settings.runtime_id,
    )
    if serving.debug and app.access.hosts:
        fail(
            "--debug shows tracebacks to whoever is connected, so it does not go with "
            "App(access=Access(hosts=…)). Leave one of the two out."
        )
    served = app.served(ledger=ledger, access=access, settings=settings, debug=serving.debug)
    try:
        application = Application(served)
    except ValueError as error:
        fail(str(error))
    redact_logs(application.state.redaction())
    return application


def _flag_behind(error: ValueError, host: str) -> str:
    """Names the flag whose value passed as such, and turns out to be none."""
    return "--trust-proxy" if "trusted_proxies" in str(error) else f"--host {host}"


def _telemetry(serving: Serving) -> bool:
    """Tells whether telemetry is wanted; ends where it was asked for and cannot be had."""
    from arp.telemetry.settings import EXTRA, is_configured, is_installed

    if serving.otel and not is_installed():
        fail(f'--otel needs OpenTelemetry; install it: pip install "{EXTRA}"')
    return serving.otel or (is_configured(os.environ) and is_installed())


EVERYWHERE = ("0.0.0.0", "::")


def _load(target: str) -> App:
    from arp.app import App
    from arp.server.target import TargetError, find

    try:
        app = find(target, App)
    except TargetError as error:
        fail(str(error))
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        # Whatever the author's own file raises, sys.exit() included.
        logging.getLogger("arp.cli").debug("loading %s", target, exc_info=True)
        fail(f"{target} cannot be loaded: {_last_line(error)}")
    if not app.handlers:
        fail(f"the App in {target} has no agent; write @app.agent above an async function")
    return app


def _last_line(error: BaseException) -> str:
    """Gives what was raised and where, in one line."""
    import traceback

    text = str(error).strip().partition("\n")[0]
    said = f"{type(error).__name__}: {text}" if text else type(error).__name__
    if isinstance(error, SyntaxError):
        return f"{type(error).__name__}: {error.msg} ({error.filename}:{error.lineno})"
    frames = [f for f in traceback.extract_tb(error.__traceback__) if "importlib" not in f.filename]
    return f"{said} ({frames[-1].filename}:{frames[-1].lineno})" if frames else said


def _serve_http(target: str, serving: Serving) -> None:
    from arp.server.ending import leave
    from arp.server.own_secrets import redact_logs
    from arp.server.serve import is_private
    from arp.server.serve import serve as run
    from arp.store.default_ledger import SHARED, ledger_of
    from arp.store.errors import StoreError, StoreLocked

    application = _application(target, serving)
    place = application.state.served.ledger if serving.ledger is None else ""
    host = serving.host
    access = application.state.served.access
    if not is_private(host) and access.is_open:
        fail(
            f"{host} can be reached by others: set --token (or ARP_TOKEN), or give App an Access "
            "with an authenticate hook, or stay on 127.0.0.1"
        )
    listener = _bind(host, serving.port)
    port = listener.getsockname()[1]

    def ready() -> None:
        redact_logs(application.state.redaction())  # the HTTP server has its own handlers by now
        if serving.port is None and port != DEFAULT_PORT:
            click.echo(f"arp: Port {DEFAULT_PORT} is taken, so this is port {port}.", err=True)
        click.echo(f"ARP on http://{_in_address(host)}:{port}")
        sys.stdout.flush()
        if place.startswith("sqlite:"):
            click.echo(f"arp: Sessions are kept in {place.removeprefix('sqlite:')}.", err=True)
        for line in _hints(host, port, access):
            click.echo(f"arp: {line}", err=True)

    try:
        served = run(application, listener, ready)
    except StoreLocked as error:
        if place != f"sqlite:{SHARED}":
            fail(str(error))
        fail(  # once that file exists, it is the default of this target
            f"another server uses {SHARED}, where this app has sessions too; stop that one, or "
            f"give this one a ledger of its own, now and later: --ledger sqlite:{ledger_of(target)}"
        )
    except StoreError as error:
        fail(str(error))
    leave(0 if served else 1)


def _in_address(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _hints(host: str, port: int, access: Access) -> Iterator[str]:
    """Says what must be known to get in; never the token itself."""
    if host in EVERYWHERE and not access.hosts:
        yield "From other machines it answers only to names that you give with --allow-host NAME."
    if access.token is not None:
        here = "127.0.0.1" if host in EVERYWHERE else _in_address(host)
        page = f"http://{here}:{port}/#token=…"
        yield f"It wants the token: open {page} with the token in place of the dots."


def _bind(host: str, port: int | None) -> socket.socket:
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


def _serve_stdio(target: str, serving: Serving) -> None:
    from arp.server.ending import leave
    from arp.server.pipes import serve_pipes, take_stdout
    from arp.store.errors import StoreError

    output = take_stdout()
    application = _application(target, serving)
    try:
        serve_pipes(application.state, sys.stdin.buffer, output)
    except StoreError as error:
        fail(str(error))
    leave(0)


@main.command(context_settings=CONTEXT)
@click.argument("url")
@click.option("--session", help="A session to go on with.")
@click.option(
    "--workflow", metavar="NAME", help="The agent of a new session, where an app has several."
)
@click.option(
    "--level",
    type=click.Choice(["minimal", "basic", "standard"]),
    default="standard",
    show_default=True,
    help="What this terminal claims to show; the rest arrives as something simpler.",
)
@click.option("--token", envvar="ARP_TOKEN", help="The server's token.  [env: ARP_TOKEN]")
def connect(
    url: str, session: str | None, workflow: str | None, level: str, token: str | None
) -> None:
    r"""Talk to an agent in the terminal.

    \b
      arp connect http://127.0.0.1:8080
      arp connect ws://127.0.0.1:8080/_arp/v1 --session my-session
      arp connect http://127.0.0.1:8080 --workflow cars
    """
    try:
        from arp_terminal.connect import run
    except ModuleNotFoundError as error:
        _missing_terminal(error)
    raise SystemExit(run(url, session=session, level=level, token=token, workflow=workflow))


@main.command(context_settings=CONTEXT)
@click.option(
    "--level",
    type=click.Choice(["minimal", "basic", "standard"]),
    default="standard",
    show_default=True,
    help="What is drawn as it is; the rest as something simpler.",
)
@click.option("--width", type=click.IntRange(20, 500), help="Columns.  [default: the terminal's]")
def render(level: str, width: int | None) -> None:
    r"""Draw ARP messages (one JSON object a line) from standard input.

    \b
      my-agent --stdio | arp render
    """
    try:
        from arp_terminal.pipe import run
    except ModuleNotFoundError as error:
        _missing_terminal(error)
    simplify = degrader(level)
    raise SystemExit(run(sys.stdin.buffer, level=level, width=width, simplify=simplify))


def degrader(level: str) -> Callable[[Component], list[Component]]:
    """Gives what does for messages from a pipe what an agent side does for a renderer of a level.

    What does not fit its schema cannot be degraded; it is said to be so.
    """
    from arp.protocol.capabilities import LEVELS
    from arp.protocol.component import Component
    from arp.protocol.errors import ArpError
    from arp.protocol.validation import check_component
    from arp.surface.degrade import Supported, degrade

    supported = Supported(dict.fromkeys(LEVELS[level], 1))

    def simpler(component: Component) -> list[Component]:
        try:
            return degrade(check_component(component, empty_ids=True), supported)
        except ArpError as error:
            told = f"({component.type} cannot be read: {error.message})"
            return [Component(component.id, "text", {"content": told})]

    return simpler


@main.command("app-server", context_settings=CONTEXT)
@click.argument("target")
@click.option(
    "--ledger", help="Where facts live: memory: or sqlite:PATH.  [default: as the app says]"
)
@click.option("-v", "--verbose", count=True, help="Log what happens, to standard error.")
def app_server(target: str, ledger: str | None, verbose: int) -> None:
    r"""Serve an agent's control plane to one program: JSON-RPC 2.0, a message a line.

    \b
      arp app-server app.py --ledger sqlite:.arp/app.db
    """
    from arp.server.ending import leave
    from arp.server.pipes import serve_control, take_stdout
    from arp.server.settings import Serving
    from arp.store.errors import StoreError

    _log(verbose)
    output = take_stdout()
    place = _checked("ledger", ledger, "--ledger") if ledger is not None else None
    application = _application(target, Serving(ledger=place, stdio=True))
    try:
        serve_control(application.state, sys.stdin.buffer, output)
    except StoreError as error:
        fail(str(error))
    leave(0)


main.add_command(sessions)
main.add_command(events)
main.add_command(evidence)
main.add_command(replay)


def _missing_terminal(error: ModuleNotFoundError) -> NoReturn:
    if error.name and error.name.partition(".")[0] in (
        "rich",
        "prompt_toolkit",
        "markdown_it",
        "arp_terminal",
    ):
        fail(
            f"the terminal needs {error.name}; install it: "
            'pip install "agent-rendering-protocol[terminal]"'
        )
    raise error


if __name__ == "__main__":
    main()
