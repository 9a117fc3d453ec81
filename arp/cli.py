"""The command line: `arp serve`, `arp connect`, `arp render`.

What is configured is read here, once: a file, then the environment, then flags.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import sys
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click

if TYPE_CHECKING:
    from arp.server.application import Application

DEFAULT_PORT = 8080
DEFAULT_LEDGER = "sqlite:.arp/ledger.db"
PORTS_TRIED = 20
"""Ports after the default one that `serve` tries when that is taken and none was named."""


def fail(text: str, code: int = 1) -> NoReturn:
    """Ends with a sentence for the person at the keyboard."""
    click.echo(f"arp: {text}", err=True)
    raise SystemExit(code)


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="agent-rendering-protocol", message="arp %(version)s")
def main() -> None:
    """One agent, every screen: serve an agent, talk to one, draw what one says."""


@main.command()
@click.argument("target")
@click.option("--host", help="Address to listen on.  [default: 127.0.0.1]")
@click.option(
    "--port", type=click.IntRange(0, 65535), help="Port; 0 picks a free one.  [default: 8080]"
)
@click.option(
    "--ledger", help=f"Where facts live: memory: or sqlite:PATH.  [default: {DEFAULT_LEDGER}]"
)
@click.option("--token", help="Whoever connects must have it.  [env: ARP_TOKEN]")
@click.option(
    "--origin", "origins", multiple=True, help="A web origin whose pages may connect. Repeatable."
)
@click.option(
    "--allow-host", "hosts", multiple=True, help="A name under which it is reached. Repeatable."
)
@click.option("--stdio", is_flag=True, help="Talk to one renderer over standard input and output.")
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

    Settings come from the file, then from ARP_HOST, ARP_PORT, ARP_LEDGER, ARP_TOKEN, then from
    flags.
    """
    from arp.server.reload import run_reloading

    if reload:
        raise SystemExit(
            run_reloading([argument for argument in sys.argv[1:] if argument != "--reload"], target)
        )
    settings = _settings(config, flags)
    _log(settings["verbose"])
    application = _application(target, settings)
    if settings["stdio"]:
        _serve_stdio(application)
    else:
        _serve_http(application, settings)


def _settings(config: Path | None, flags: dict[str, Any]) -> dict[str, Any]:
    """Merges file < environment < flag."""
    settings: dict[str, Any] = {"host": "127.0.0.1", "port": None, "ledger": None, "token": None}
    if config is not None:
        settings |= _from_file(config, set(flags))
    for name in ("host", "port", "ledger", "token"):
        value = os.environ.get(f"ARP_{name.upper()}")
        if value:
            settings[name] = value
    settings |= {name: value for name, value in flags.items() if value or name not in settings}
    if flags["port"] is not None:
        settings["port"] = flags["port"]
    try:
        settings["port"] = None if settings["port"] is None else int(settings["port"])
    except ValueError:
        fail(f"port {settings['port']!r} is not a number")
    return settings


def _from_file(config: Path, known: set[str]) -> dict[str, Any]:
    try:
        table = tomllib.loads(config.read_text()).get("serve", {})
    except OSError as error:
        fail(f"{config}: {error.strerror}")
    except tomllib.TOMLDecodeError as error:
        fail(f"{config}: {error}")
    names = {"origin": "origins", "allow-host": "hosts"}
    found = {names.get(key, key): value for key, value in table.items()}
    unknown = set(found) - known
    if unknown:
        listed = ", ".join(sorted(known))
        fail(f"{config}: [serve] has no setting {sorted(unknown)[0]!r}; there are {listed}")
    return found


def _log(verbose: int) -> None:
    level = (logging.WARNING, logging.INFO, logging.DEBUG)[min(verbose, 2)]
    logging.basicConfig(level=level, format="%(asctime)s %(levelname)s %(name)s: %(message)s")


def _application(target: str, settings: dict[str, Any]) -> Application:
    import msgspec

    from arp.app import App
    from arp.server.application import Application
    from arp.server.target import TargetError, find

    try:
        app = find(target, App)
    except TargetError as error:
        fail(str(error))
    except Exception as error:
        # The author's own file raised: its traceback is what helps.
        logging.getLogger(__name__).debug("loading %s", target, exc_info=True)
        fail(f"{target} cannot be loaded: {_last_line(error)}")
    if not app.handlers:
        fail(f"the App in {target} has no agent; write @app.agent above an async function")
    access = app.access
    host = settings["host"]
    names = (
        (host, f"[{host}]", *settings["hosts"])
        if host not in ("0.0.0.0", "::")
        else settings["hosts"]
    )
    access = msgspec.structs.replace(
        access,
        token=settings["token"] or access.token,
        hosts=(*access.hosts, *names),
        origins=(*access.origins, *settings["origins"]),
    )
    default = DEFAULT_LEDGER if app.ledger == "memory:" else app.ledger
    ledger = settings["ledger"] or (
        "memory:" if settings["stdio"] and app.ledger == "memory:" else default
    )
    return Application(app.served(ledger=ledger, access=access))


def _last_line(error: BaseException) -> str:
    import traceback

    frames = [f for f in traceback.extract_tb(error.__traceback__) if "importlib" not in f.filename]
    where = f" ({frames[-1].filename}:{frames[-1].lineno})" if frames else ""
    return f"{type(error).__name__}: {error}{where}"


def _serve_http(application: Application, settings: dict[str, Any]) -> None:
    from arp.server.serve import is_private
    from arp.server.serve import serve as run

    host = settings["host"]
    if not is_private(host):
        access = application.served.access
        if access.token is None and access.authenticate is None:
            fail(
                f"{host} can be reached by others: set --token (or ARP_TOKEN), or give App an "
                "authenticate hook, or stay on 127.0.0.1"
            )
    listener = _bind(host, settings["port"])
    shown = f"[{host}]" if ":" in host else host
    address = f"http://{shown}:{listener.getsockname()[1]}"

    def ready() -> None:
        click.echo(f"ARP on {address}")
        sys.stdout.flush()

    if not run(application, listener, ready):
        raise SystemExit(1)


def _bind(host: str, port: int | None) -> Any:
    from arp.server.serve import bind

    ports = [port] if port is not None else range(DEFAULT_PORT, DEFAULT_PORT + PORTS_TRIED)
    for candidate in ports:
        try:
            listener = bind(host, candidate)
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                fail(f"cannot listen on {host}:{candidate}: {error.strerror}")
            continue
        if port is None and candidate != DEFAULT_PORT:
            click.echo(f"arp: port {DEFAULT_PORT} is taken, so this is {candidate}", err=True)
        return listener
    fail(f"port {ports[0]} is taken; name another: --port 8090, or --port 0 for any that is free")


def _serve_stdio(application: Application) -> None:
    from arp.hub.directory import Principal
    from arp.hub.peer import Peer
    from arp.store.errors import StoreError
    from arp.transport.queue_outbox import QueueOutbox
    from arp.transport.stdio import serve_stdio

    output = os.fdopen(os.dup(sys.stdout.fileno()), "wb", buffering=0)
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())

    async def talk() -> None:
        hub = await application.hub()

        def make_peer(outbox: QueueOutbox) -> Peer:
            check = application.guard.check_token
            return Peer(hub, outbox, "json", application.workflow, Principal(), check)

        try:
            await serve_stdio(sys.stdin.buffer, output, make_peer)
        finally:
            await application.aclose()

    try:
        asyncio.run(talk())
    except StoreError as error:
        fail(str(error))


@main.command()
@click.argument("url")
@click.option("--session", help="A session to go on with.")
@click.option(
    "--level",
    type=click.Choice(["minimal", "basic", "standard"]),
    default="standard",
    show_default=True,
    help="What this terminal claims to show; the rest arrives as something simpler.",
)
@click.option("--token", envvar="ARP_TOKEN", help="The server's token.  [env: ARP_TOKEN]")
def connect(url: str, session: str | None, level: str, token: str | None) -> None:
    r"""Talk to an agent in the terminal.

    \b
      arp connect http://127.0.0.1:8080
      arp connect ws://127.0.0.1:8080/_arp/v1 --session my-session
    """
    try:
        from arp_terminal.connect import run
    except ModuleNotFoundError as error:
        _missing_terminal(error)
    raise SystemExit(run(url, session=session, level=level, token=token))


@main.command()
@click.option(
    "--level",
    type=click.Choice(["minimal", "basic", "standard"]),
    default="standard",
    show_default=True,
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
    raise SystemExit(run(sys.stdin.buffer, level=level, width=width))


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
