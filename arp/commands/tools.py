"""`arp tools`: the Tool Agent on the command line.

`list` and `show` read the data directory, or ask a server; `invoke`, `request`, `stop`, `enable`,
`disable` and `remove` ask a server, which alone may start and end tools; `import` registers the
tools of an MCP server; `budget` shows what was spent; `serve` serves all.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click
import msgspec

from arp.commands.output import CONTEXT, cut, fail, json_text, printable
from arp.protocol.framing.program_output import printed
from arp.protocol.json_value import Json, JsonObject
from arp.protocol.token_address import split_token

if TYPE_CHECKING:
    from collections.abc import Callable

    from arp.tools.registry.registry import ToolRegistry

T = TypeVar("T")

ASK_S: Final = 600.0
"""So long a tool may take to answer."""
POLL_S: Final = 0.5
"""Between two looks at a task."""
COLUMNS: Final = ("tool_id", "status", "category")
OVER: Final = ("completed", "failed", "cancelled")

_URL = click.option(
    "--url", envvar="TOOL_AGENT_URL", help="The server.  [env: TOOL_AGENT_URL]", default=None
)
_TOKEN = click.option("--token", envvar="ARP_TOKEN", help="Its token.  [env: ARP_TOKEN]")


@click.group("tools", context_settings=CONTEXT)
def tools() -> None:
    """List, call, build and serve tools for agents (the Tool Agent)."""


@tools.command("list", context_settings=CONTEXT)
@_URL
@_TOKEN
@click.option("--json", "as_json", is_flag=True, help="As GET /tools answers.")
def list_command(url: str | None, token: str | None, as_json: bool) -> None:
    """List the tools of the data directory, or of a server.

    The data directory is TOOL_AGENT_DATA_DIR.  [default: data]
    """
    found = _asked(url, token, "GET", "/tools") if url is not None else _local_catalog()
    if as_json:
        _print(found)
        return
    rows = found["tools"]
    if not rows:
        click.echo("There is no tool yet. arp tools request asks for one.")
    width = max((len(row["tool_id"]) for row in rows), default=0)
    for row in rows:
        tool_id, status, category = (printable(row[name]) for name in COLUMNS)
        line = f"{tool_id:<{width}}  {status:<8}  {category:<10}  {printable(row['name'])}"
        click.echo(cut(line, 100))


@tools.command(context_settings=CONTEXT)
@click.argument("tool_id")
@_URL
@_TOKEN
def show(tool_id: str, url: str | None, token: str | None) -> None:
    """Show a tool: of the data directory all of it, of a server its schemas."""
    if url is not None:
        _print(_asked(url, token, "GET", f"/tools/{_quoted(tool_id)}/schema"))
        return
    _print(msgspec.to_builtins(_local(lambda registry: registry.get(tool_id))))


@tools.command(context_settings=CONTEXT)
@click.argument("tool_id")
@click.argument("params", default="{}")
@_URL
@_TOKEN
@click.option("--stream", is_flag=True, help="Print pieces of the result as they come.")
def invoke(tool_id: str, params: str, url: str | None, token: str | None, stream: bool) -> None:
    r"""Call a tool with PARAMS, a JSON object.

    \b
      arp tools invoke image_compress_api '{"image_path": "a.png", "quality": 80}'
    """
    try:
        given = msgspec.json.decode(params)
    except msgspec.DecodeError as error:
        fail(f"PARAMS is no JSON: {error}")
    body = {"params": given, "stream": stream}
    path = f"/tools/{_quoted(tool_id)}/invoke"
    if stream:
        _stream(_server(url), token, path, body)
    else:
        _print(_asked(_server(url), token, "POST", path, body)["result"])


@tools.command(context_settings=CONTEXT)
@click.argument("description")
@_URL
@_TOKEN
@click.option("--callback-url", help="Gets the outcome.")
@click.option("--no-wait", is_flag=True, help="Do not wait until the task is over.")
def request(
    description: str, url: str | None, token: str | None, callback_url: str | None, no_wait: bool
) -> None:
    r"""Ask a server for a tool, in words.

    \b
      arp tools request "a tool that compresses images"
    """
    server = _server(url)
    body = {"description": description}
    if callback_url:
        body["callback_url"] = callback_url
    task = _asked(server, token, "POST", "/tools/request", body)
    task_id, last_line = task["task_id"], ""
    while not no_wait and task["status"] not in OVER:
        task = _asked(server, token, "GET", f"/tasks/{task_id}/status")
        line = progress_line(server, task)
        if line != last_line:
            click.echo(printable(line), err=True)
            last_line = line
        time.sleep(POLL_S)
    _print(task)
    if task["status"] in ("failed", "cancelled"):
        raise SystemExit(1)


def progress_line(server: str, task: JsonObject) -> str:
    """Return how far a task is, with the address at which its question is answered."""
    if task["status"] != "waiting_approval":
        return str(task["status"])
    place, mark, fragment = server.partition("#")
    page = f"{place.rstrip('/')}/?session={task['session_id']}{mark}{fragment}"
    return f"waiting for your answer: {task['waiting_for']} Answer it here: {page}"


@tools.command(context_settings=CONTEXT)
@click.argument("tool_id")
@_URL
@_TOKEN
def stop(tool_id: str, url: str | None, token: str | None) -> None:
    """Stop a tool once its calls have ended; its next call starts it again."""
    _command(tool_id, "stop", url, token)


@tools.command(context_settings=CONTEXT)
@click.argument("tool_id")
@_URL
@_TOKEN
def disable(tool_id: str, url: str | None, token: str | None) -> None:
    """Refuse further calls of a tool until it is enabled; stop it once its calls have ended.

    It stays disabled after a restart, and no task repairs it.
    """
    _command(tool_id, "disable", url, token)


@tools.command(context_settings=CONTEXT)
@click.argument("tool_id")
@_URL
@_TOKEN
def enable(tool_id: str, url: str | None, token: str | None) -> None:
    """Let a tool that was disabled be called again."""
    _command(tool_id, "enable", url, token)


@tools.command(context_settings=CONTEXT)
@click.argument("tool_id")
@_URL
@_TOKEN
def remove(tool_id: str, url: str | None, token: str | None) -> None:
    """Remove a tool once its calls have ended, with its files and its container.

    What it has cost stays in the budget.
    """
    done = _asked(_server(url), token, "DELETE", f"/tools/{_quoted(tool_id)}")
    what = "".join(f", {printable(one)}" for one in done["removed"])
    click.echo(f"removed {printable(done['tool_id'])}{what}")
    for one in done["kept"]:
        click.echo(f"kept {printable(one)}", err=True)


def _command(tool_id: str, command: str, url: str | None, token: str | None) -> None:
    """Have a server carry out a command about a tool, and print what the tool is then."""
    path = f"/tools/{_quoted(tool_id)}/{command}"
    tool = _asked(_server(url), token, "POST", path, {})
    words = (printable(tool[name]) for name in ("tool_id", "status", "state"))
    click.echo("  ".join(words))


@tools.command("import", context_settings=CONTEXT)
@click.argument("name")
@click.argument("server", nargs=-1, required=True)
@click.option(
    "--env", multiple=True, metavar="NAME=VALUE", help="Variable of the server's process."
)
@click.option("--header", multiple=True, metavar="NAME: VALUE", help="Header of its requests.")
def import_command(name: str, server: tuple[str, ...], **options: Any) -> None:
    r"""Register the tools of an MCP server: an address, or a command behind --.

    \b
      arp tools import shop https://shop.example.org/mcp
      arp tools import files -- npx -y @modelcontextprotocol/server-filesystem /srv
    """
    from arp.commands.tools_serving import import_server

    import_server(name, server, options["env"], options["header"])


@tools.command(context_settings=CONTEXT)
@click.option("--settle", metavar="ID", help="Say that a reserved amount was paid.")
@click.option("--amount", metavar="USD", help="With --settle: how much was paid.")
@click.option("--cancel", metavar="ID", help="Say that a reserved amount was not paid.")
@click.option(
    "--rebuild",
    metavar="USD",
    help="Say what was spent this month, if that is lost; all: the log.",
)
def budget(settle: str | None, amount: str | None, cancel: str | None, rebuild: str | None) -> None:
    """Show what was spent this month, what is left, and what is reserved.

    A reservation that a crash has left counts until somebody says whether it was paid. The data
    directory is TOOL_AGENT_DATA_DIR.  [default: data]
    """
    from arp.commands.tools_serving import show_budget

    given = [one for one in (settle, cancel, rebuild) if one is not None]
    if len(given) > 1 or (amount and not settle):
        fail("use --settle ID, --settle ID --amount USD, --cancel ID, or --rebuild USD")
    show_budget(settle, amount, cancel, rebuild)


@tools.command(context_settings=CONTEXT)
@click.option("--coder", help="Who builds tools: claude-code, codex, or another runtime's name.")
@click.option("--host", default=None, help="Address to listen on.  [default: 127.0.0.1]")
@click.option("--port", type=click.IntRange(0, 65535), help="Port.  [default: 8001]")
@click.option("--ledger", help="Where facts are stored.  [default: sqlite:.arp/tools.db]")
@click.option("--token", help="Token that every client must send.  [env: ARP_TOKEN]")
@click.option("--no-token", is_flag=True, help="Make no token at the start.")
@click.option("--origin", "origins", multiple=True, help="Web origin whose pages may connect.")
@click.option("--allow-host", "hosts", multiple=True, help="Host name under which it is reached.")
@click.option(
    "--stdio", is_flag=True, help="Serve the tools by MCP over standard input and output."
)
@click.option("-v", "--verbose", count=True, help="Log connections; twice: every frame.")
def serve(stdio: bool, coder: str | None, **flags: Any) -> None:
    r"""Serve the Tool Agent: its HTTP interface, MCP at /mcp, and a chat in which tools are built.

    \b
      arp tools serve --coder claude-code

    Settings are TOOL_AGENT_… and data/config.json; docs/tools.md lists them.
    """
    from arp.commands.tools_serving import serve_tools, serve_tools_stdio

    if stdio:
        serve_tools_stdio()
    else:
        serve_tools(coder, flags)


def _local(read: Callable[[ToolRegistry], T]) -> T:
    """Read the registry of the data directory."""
    from arp.commands.tools_serving import read_registry

    return read_registry(read)


def _local_catalog() -> JsonObject:
    names = (*COLUMNS, "name", "description")
    tools = _local(lambda registry: registry.tools())
    return {"tools": [{name: str(getattr(tool, name)) for name in names} for tool in tools]}


def _server(url: str | None) -> str:
    if url is not None:
        return url.rstrip("/")
    from arp.commands.tools_serving import own_address

    return own_address()


def _quoted(part: str) -> str:
    from urllib.parse import quote

    return quote(part, safe="")


def _asked(
    url: str, token: str | None, method: str, path: str, body: JsonObject | None = None
) -> JsonObject:
    """Ask a server; end with its error if it refuses."""
    import httpx

    url, token = split_token(url, token)
    try:
        answer = httpx.request(
            method, f"{url.rstrip('/')}{path}", json=body, headers=_headers(token), timeout=ASK_S
        )
        value: Json = answer.json()
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        fail(
            f"{url} cannot be asked: {str(error) or type(error).__name__}; "
            "arp tools serve starts one"
        )
    except ValueError:
        fail(f"{url} is no Tool Agent: it answers {method} {path} with no JSON")
    if not answer.is_success or not isinstance(value, dict):
        fail(_error_of(value) or f"{url} answers {answer.status_code}")
    return value


def _stream(url: str, token: str | None, path: str, body: JsonObject) -> None:
    import httpx

    url, token = split_token(url, token)
    url = url.rstrip("/")
    try:
        with httpx.stream(
            "POST", f"{url}{path}", json=body, headers=_headers(token), timeout=ASK_S
        ) as answer:
            if not answer.is_success:
                fail(_error_of(msgspec.json.decode(answer.read())))
            for line in answer.iter_lines():
                if line.startswith("data:"):
                    event = msgspec.json.decode(line.removeprefix("data:"))
                    if "error" in event:
                        fail(event["chunk"])
                    click.echo(printable(printed(event["chunk"])))
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        fail(f"{url} cannot be asked: {str(error) or type(error).__name__}")


def _headers(token: str | None) -> dict[str, str]:
    return {"authorization": f"Bearer {token}"} if token else {}


def _error_of(value: Json) -> str:
    if not isinstance(value, dict):
        return ""
    payload = value.get("payload")
    inner = payload.get("error") if isinstance(payload, dict) else None
    return str(value.get("error") or inner or "")


def _print(value: Json) -> None:
    click.echo(json_text(msgspec.json.format(msgspec.json.encode(value), indent=2)))
