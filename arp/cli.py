"""The command line: `arp serve`, `arp connect`, `arp render`, `arp app-server`, and more.

Each command imports its code when it is called, so that `arp` itself starts fast.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click

from arp import __version__
from arp.commands.ari import ari
from arp.commands.conformance import conformance
from arp.commands.ledger.events import events
from arp.commands.ledger.evidence import evidence
from arp.commands.ledger.feedback import feedback
from arp.commands.ledger.reader import ReaderError
from arp.commands.ledger.sessions import delete, sessions
from arp.commands.output import CONTEXT, fail
from arp.commands.replay.replay import replay
from arp.commands.token import token
from arp.commands.tools import tools
from arp.protocol.errors import LocalError

if TYPE_CHECKING:
    from collections.abc import Callable

    from arp.client.options import Options
    from arp.protocol.codec import Encoding
    from arp.protocol.components import Component

INTERRUPTED = 130
"""Exit code after Ctrl-C outside of a running command: 128 + SIGINT, as in shells."""


def _keep_lines(command: click.Command) -> None:
    r"""Replace `\b` in the help text by the character after which click does not rewrap lines."""
    command.help = (command.help or "").replace("\\b", "\b")
    for one in command.commands.values() if isinstance(command, click.Group) else ():
        _keep_lines(one)


class _Commands(click.Group):
    """The group of all commands; it prints every error on one line."""

    def add_command(self, cmd: click.Command, name: str | None = None) -> None:
        """Add a command, and prepare the help texts of it and of its own commands."""
        _keep_lines(cmd)
        super().add_command(cmd, name)

    def main(self, *args: Any, **options: Any) -> Any:
        """Run a command and end the process."""
        options["standalone_mode"] = False
        try:
            code = super().main(*args, **options)
        except click.exceptions.NoArgsIsHelpError as error:
            click.echo(error.format_message(), err=True)
            code = error.exit_code
        except click.UsageError as error:
            command = error.ctx.command_path if error.ctx is not None else "arp"
            text = error.format_message().rstrip(".")
            fail(f"{text}. See {command} --help.", error.exit_code)
        except click.ClickException as error:
            fail(error.format_message(), error.exit_code)
        except (ReaderError, LocalError) as error:
            fail(str(error))
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
@click.argument("target", required=False)
@click.option(
    "--runtime",
    metavar="NAME",
    help="Serve an agent that exists already, in place of TARGET: claude-code, codex, "
    'acp:"COMMAND", langgraph:MODULE:NAME, openai-agents:…, pydantic-ai:…, ag-ui:URL, '
    "http(s)://HOST:PORT, grpc(s)://HOST:PORT, or module:NAME.",
)
@click.option(
    "--model",
    metavar="NAME",
    help="Serve a model, in place of TARGET: openai:NAME, anthropic:NAME, ollama:NAME, …",
)
@click.option("--base-url", help="URL of the model.  [default: that of its provider]")
@click.option("--instructions", help="System prompt of the model.")
@click.option("--cwd", help="Working directory of the agent of --runtime.  [default: this one]")
@click.option("--mode", help="Mode of new sessions of --runtime.")
@click.option("--runtime-model", help="Model of new sessions of --runtime.")
@click.option(
    "--provider",
    "providers",
    multiple=True,
    metavar="NAME",
    help="Provider that users of --runtime can select with /provider. Repeatable.",
)
@click.option(
    "--pass-env",
    "passed",
    multiple=True,
    metavar="NAME",
    help="Additional environment variable for the agent of --runtime; NAME* for several.",
)
@click.option("--host", help="Address to listen on.  [default: 127.0.0.1]")
@click.option(
    "--port", type=click.IntRange(0, 65535), help="Port; 0 = any free port.  [default: 8080]"
)
@click.option(
    "--ledger",
    help="Where facts are stored: memory:, sqlite:PATH or postgresql://….  [default: a file in "
    ".arp/ named after TARGET; for app.py sqlite:.arp/app.db]",
)
@click.option("--token", help="Token that every client must send.  [env: ARP_TOKEN]")
@click.option(
    "--no-token", is_flag=True, help="Create no token at the start, even if agents run commands."
)
@click.option(
    "--origin", "origins", multiple=True, help="Web origin whose pages may connect. Repeatable."
)
@click.option(
    "--allow-host",
    "hosts",
    multiple=True,
    help="Host name under which clients reach the server. Repeatable.",
)
@click.option(
    "--trust-proxy",
    "trusted_proxies",
    multiple=True,
    help="Address or network of a proxy whose forwarding headers count. Repeatable.",
)
@click.option("--oidc-issuer", help="OpenID provider of the users.  [env: ARP_OIDC_ISSUER]")
@click.option("--oidc-client-id", help="Client id of this server there.  [env: ARP_OIDC_CLIENT_ID]")
@click.option(
    "--oidc-client-secret",
    help="Client secret; better set in the environment.  [env: ARP_OIDC_CLIENT_SECRET]",
)
@click.option("--oidc-user-claim", help="Claim that names the user.  [default: sub]")
@click.option(
    "--oidc-admin",
    metavar="CLAIM=VALUE",
    help="Claim of users who may read all sessions, for example groups=arp-admins.",
)
@click.option("--public-url", help="Address of the server in browsers.  [env: ARP_PUBLIC_URL]")
@click.option("--login-url", help="Login page of another application, for a link on the page.")
@click.option("--logout-url", help="Logout page of that application.")
@click.option("--sign-in-text", help="Text on the page for users who are not signed in.")
@click.option(
    "--no-redact", "redact", flag_value=False, default=None, help="Keep secrets in facts and logs."
)
@click.option(
    "--otel", is_flag=True, help="Export spans and metrics (OpenTelemetry; OTEL_… says where)."
)
@click.option("--runtime-id", help="Id of this runtime in facts.  [default: that of the ledger]")
@click.option(
    "--transfer-key",
    help="Secret shared with servers that transfer surfaces to this one.  [env: ARP_TRANSFER_KEY]",
)
@click.option("--stdio", is_flag=True, help="Serve one renderer over standard input and output.")
@click.option(
    "--unix",
    metavar="PATH",
    help="Also serve at a Unix socket; auto: $ARP_SOCKET, or one in $XDG_RUNTIME_DIR.",
)
@click.option(
    "--dial",
    multiple=True,
    metavar="unix:PATH",
    help="Connect to a renderer that listens (arp connect --listen). Repeatable.",
)
@click.option(
    "--dialect",
    type=click.Choice(["session", "object"]),
    help="Protocol dialect over --stdio and Unix sockets.  [default: session]",
)
@click.option(
    "--grpc", metavar="[HOST:]PORT", help="Also serve over gRPC; HOST defaults to --host."
)
@click.option("--grpc-cert", metavar="FILE", help="TLS certificate of --grpc (PEM).")
@click.option("--grpc-key", metavar="FILE", help="Key of that certificate (PEM).")
@click.option("--debug", is_flag=True, help="Show tracebacks to all clients; only on this machine.")
@click.option("--reload", is_flag=True, help="Restart when a Python file beside TARGET changes.")
@click.option("--config", type=click.Path(path_type=Path), help="TOML file with a [serve] table.")
@click.option("-v", "--verbose", count=True, help="Log connections; twice: every frame.")
def serve(target: str | None, reload: bool, config: Path | None, **flags: Any) -> None:
    r"""Serve an agent to every screen.

    TARGET is a Python file or module with an App, optionally followed by the name of the App:

    \b
      arp serve app.py
      arp serve app.py:explorer --port 0
      arp serve mypackage.agents --ledger sqlite:/var/lib/arp/ledger.db

    \b
      arp serve --runtime claude-code --cwd project
      arp serve --runtime acp:"opencode acp"
      arp serve --model openai:gpt-5

    \b
      arp serve app.py --unix /run/user/1000/arp.sock --grpc 7001
      arp serve app.py --dial unix:/run/user/1000/screen.sock

    Several agents can be served at the same time: each TARGET has its own ledger, and if port 8080
    is in use, a server uses the next free port.

    Settings come from the file, then from ARP_HOST, ARP_PORT, ARP_LEDGER, ARP_TOKEN,
    ARP_RUNTIME_ID, ARP_ENCODING (for Unix sockets: msgpack or json), ARP_OIDC_ISSUER,
    ARP_OIDC_CLIENT_ID, ARP_OIDC_CLIENT_SECRET, ARP_PUBLIC_URL, then from flags.
    """
    if reload:
        from arp.commands.serve.reload import run_reloading

        if target is None:
            fail("--reload watches the files beside TARGET; give one")
        arguments = [argument for argument in sys.argv[1:] if argument != "--reload"]
        raise SystemExit(run_reloading(arguments, target))
    from arp.commands.serve.serve_settings import given_flags, read_settings
    from arp.commands.serve.serving import serve_target

    serve_target(target, read_settings(config, given_flags(flags)))


@main.command(context_settings=CONTEXT)
@click.argument("url")
@click.option("--session", help="Id of the session to open.  [default: a new session]")
@click.option("--workflow", metavar="NAME", help="Agent of a new session, if the app has several.")
@click.option(
    "--level",
    type=click.Choice(["minimal", "basic", "standard"]),
    default="standard",
    show_default=True,
    help="Components that this terminal supports; others are replaced by simpler ones.",
)
@click.option("--token", envvar="ARP_TOKEN", help="The server's token.  [env: ARP_TOKEN]")
@click.option("--listen", is_flag=True, help="Wait at unix:PATH for an agent that connects.")
@click.option(
    "--encoding",
    type=click.Choice(["msgpack", "json"]),
    envvar="ARP_ENCODING",
    help="Encoding over a Unix socket.  [env: ARP_ENCODING; default: msgpack]",
)
@click.option(
    "--dialect",
    type=click.Choice(["session", "object"]),
    default="session",
    show_default=True,
    help="Protocol dialect; over event streams only session is available.",
)
def connect(url: str, **flags: Any) -> None:
    r"""Talk to an agent in the terminal.

    \b
      arp connect http://127.0.0.1:8080
      arp connect ws://127.0.0.1:8080/_arp/v1 --session my-session
      arp connect http://127.0.0.1:8080 --workflow cars
      arp connect grpc:127.0.0.1:7001
      arp connect unix:/run/user/1000/arp.sock
      arp connect --listen unix:/run/user/1000/screen.sock
      arp connect stdio:"arp serve app.py --stdio"

    unix: without a path means $ARP_SOCKET, or a socket in $XDG_RUNTIME_DIR.
    """
    try:
        from arp_terminal.connect import run
    except ModuleNotFoundError as error:
        _missing_terminal(error)
    client_options = _socket_options(url, flags.pop("listen"), flags.pop("encoding"))
    dialect = flags.pop("dialect")
    if dialect != "session":
        client_options["dialect"] = dialect
    if url == "unix:":
        from arp.unix.socket_path import default_path

        url = f"unix:{default_path(os.environ, flags['session'])}"
    raise SystemExit(run(url, **flags, more=client_options))


def _socket_options(url: str, listen: bool, encoding: Encoding | None) -> Options:
    """Return the options of the client for Unix sockets."""
    options: Options = {"listen": True} if listen else {}
    # ARP_ENCODING may be set for Unix sockets while the address is another one.
    if encoding is not None and url.startswith("unix:"):
        options["encoding"] = encoding
    return options


@main.command(context_settings=CONTEXT)
@click.option(
    "--level",
    type=click.Choice(["minimal", "basic", "standard"]),
    default="standard",
    show_default=True,
    help="Components to draw; others are replaced by simpler ones.",
)
@click.option(
    "--width", type=click.IntRange(20, 500), help="Width in columns.  [default: the terminal's]"
)
def render(level: str, width: int | None) -> None:
    r"""Draw ARP messages from standard input, one JSON object per line.

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
    """Return a function that degrades components for a renderer of a level.

    It replaces a component that does not fit its schema by a text with the problem.
    """
    from arp.protocol.capabilities import LEVELS
    from arp.protocol.components import Component
    from arp.protocol.errors import ArpError
    from arp.protocol.validate import check_component
    from arp.surface.degrade import RendererSupport, degrade

    supported = RendererSupport(dict.fromkeys(LEVELS[level], 1))

    def simpler(component: Component) -> list[Component]:
        try:
            return degrade(check_component(component, empty_ids=True), supported)
        except ArpError as error:
            content = f"({component.type} cannot be read: {error.message})"
            return [Component(component.id, "text", {"content": content})]

    return simpler


@main.command("app-server", context_settings=CONTEXT)
@click.argument("target")
@click.option(
    "--ledger",
    help="Where facts are stored: memory:, sqlite:PATH or postgresql://….  [default: the app's]",
)
@click.option("-v", "--verbose", count=True, help="Log to standard error.")
def app_server(target: str, ledger: str | None, verbose: int) -> None:
    r"""Serve the control plane of an app to one program: JSON-RPC 2.0, one message per line.

    \b
      arp app-server app.py --ledger sqlite:.arp/app.db
    """
    from arp.commands.serve.serving import serve_control_plane

    serve_control_plane(target, ledger, verbose)


main.add_command(ari)
main.add_command(sessions)
main.add_command(delete)
main.add_command(feedback)
main.add_command(token)
main.add_command(events)
main.add_command(evidence)
main.add_command(replay)
main.add_command(conformance)
main.add_command(tools)


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
