"""`arp tools`: the Tool Agent on the command line.

`list` and `show` read the data directory, or ask a server. `invoke`, `request`, `stop`, `enable`,
`disable` and `remove` ask a server, because only the server may start and end tools. `import`
registers the tools of an MCP server. `budget` shows the spent money. `serve` starts the server.
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
"""Time for the answer of a tool."""
POLL_S: Final = 0.5
"""Interval between two requests for the status of a task."""
COLUMNS: Final = ("tool_id", "status", "category")
OVER: Final = ("completed", "failed", "cancelled")
"""States of a task that has ended."""

_URL = click.option(
    "--url", envvar="TOOL_AGENT_URL", help="Server to ask.  [env: TOOL_AGENT_URL]", default=None
)
_TOKEN = click.option("--token", envvar="ARP_TOKEN", help="The server's token.  [env: ARP_TOKEN]")


@click.group("tools", context_settings=CONTEXT)
def tools() -> None:
    """List, call, build and serve tools for agents (the Tool Agent)."""


@tools.command("list", context_settings=CONTEXT)
@_URL
@_TOKEN
@click.option("--json", "as_json", is_flag=True, help="Print JSON, as GET /tools answers.")
def list_command(url: str | None, token: str | None, as_json: bool) -> None:
    """List the tools of the data directory, or of a server.

    The data directory is TOOL_AGENT_DATA_DIR.  [default: data]
    """
    catalog = _request(url, token, "GET", "/tools") if url is not None else _local_catalog()
    if as_json:
        _print(catalog)
        return
    rows = catalog["tools"]
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
    """Show a tool of the data directory, or the schemas of a tool of a server."""
    if url is not None:
        _print(_request(url, token, "GET", f"/tools/{_quoted(tool_id)}/schema"))
        return
    _print(msgspec.to_builtins(_local(lambda registry: registry.get(tool_id))))


@tools.command(context_settings=CONTEXT)
@click.argument("tool_id")
@click.argument("params", default="{}")
@_URL
@_TOKEN
@click.option("--stream", is_flag=True, help="Print pieces of the result as they arrive.")
def invoke(tool_id: str, params: str, url: str | None, token: str | None, stream: bool) -> None:
    r"""Call a tool with PARAMS, a JSON object.

    \b
      arp tools invoke image_compress_api '{"image_path": "a.png", "quality": 80}'
    """
    try:
        arguments = msgspec.json.decode(params)
    except msgspec.DecodeError as error:
        fail(f"PARAMS is no JSON: {error}")
    body = {"params": arguments, "stream": stream}
    path = f"/tools/{_quoted(tool_id)}/invoke"
    if stream:
        _stream(_server(url), token, path, body)
    else:
        _print(_request(_server(url), token, "POST", path, body)["result"])


@tools.command(context_settings=CONTEXT)
@click.argument("description")
@_URL
@_TOKEN
@click.option("--callback-url", help="URL that receives the outcome.")
@click.option("--no-wait", is_flag=True, help="Do not wait until the task has ended.")
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
    task = _request(server, token, "POST", "/tools/request", body)
    task_id, last_line = task["task_id"], ""
    while not no_wait and task["status"] not in OVER:
        task = _request(server, token, "GET", f"/tasks/{task_id}/status")
        line = progress_line(server, task)
        if line != last_line:
            click.echo(printable(line), err=True)
            last_line = line
        time.sleep(POLL_S)
    _print(task)
    if task["status"] in ("failed", "cancelled"):
        raise SystemExit(1)


def progress_line(server: str, task: JsonObject) -> str:
    """Return the status of a task, and the address of the page that can answer its question."""
    if task["status"] != "waiting_approval":
        return str(task["status"])
    base, mark, fragment = server.partition("#")  # the fragment has the token
    page = f"{base.rstrip('/')}/?session={task['session_id']}{mark}{fragment}"
    return f"waiting for your answer: {task['waiting_for']} Answer it here: {page}"


@tools.command(context_settings=CONTEXT)
@click.argument("tool_id")
@_URL
@_TOKEN
def stop(tool_id: str, url: str | None, token: str | None) -> None:
    """Stop a tool after its calls have ended; its next call starts it again."""
    _command(tool_id, "stop", url, token)


@tools.command(context_settings=CONTEXT)
@click.argument("tool_id")
@_URL
@_TOKEN
def disable(tool_id: str, url: str | None, token: str | None) -> None:
    """Refuse further calls of a tool until it is enabled; stop it after its calls have ended.

    It stays disabled after a restart, and no task repairs it.
    """
    _command(tool_id, "disable", url, token)


@tools.command(context_settings=CONTEXT)
@click.argument("tool_id")
@_URL
@_TOKEN
def enable(tool_id: str, url: str | None, token: str | None) -> None:
    """Allow calls of a disabled tool again."""
    _command(tool_id, "enable", url, token)


@tools.command(context_settings=CONTEXT)
@click.argument("tool_id")
@_URL
@_TOKEN
def remove(tool_id: str, url: str | None, token: str | None) -> None:
    """Remove a tool after its calls have ended, with its files and its container.

    Its costs stay in the budget.
    """
    removal = _request(_server(url), token, "DELETE", f"/tools/{_quoted(tool_id)}")
    parts = "".join(f", {printable(one)}" for one in removal["removed"])
    click.echo(f"removed {printable(removal['tool_id'])}{parts}")
    for one in removal["kept"]:
        click.echo(f"kept {printable(one)}", err=True)


def _command(tool_id: str, command: str, url: str | None, token: str | None) -> None:
    """Ask a server to run a command on a tool, and print the new state of the tool."""
    path = f"/tools/{_quoted(tool_id)}/{command}"
    tool = _request(_server(url), token, "POST", path, {})
    words = (printable(tool[name]) for name in ("tool_id", "status", "state"))
    click.echo("  ".join(words))


@tools.command("import", context_settings=CONTEXT)
@click.argument("name")
@click.argument("server", nargs=-1, required=True)
@click.option(
    "--env", multiple=True, metavar="NAME=VALUE", help="Environment variable of the command."
)
@click.option("--header", multiple=True, metavar="NAME: VALUE", help="Header of requests to it.")
def import_command(name: str, server: tuple[str, ...], **options: Any) -> None:
    r"""Register the tools of an MCP server: SERVER is an address, or a command after --.

    \b
      arp tools import shop https://shop.example.org/mcp
      arp tools import files -- npx -y @modelcontextprotocol/server-filesystem /srv
    """
    from arp.commands.tools_serving import import_server

    import_server(name, server, options["env"], options["header"])


@tools.command(context_settings=CONTEXT)
@click.option("--settle", metavar="ID", help="Record that a reserved amount was paid.")
@click.option("--amount", metavar="USD", help="Amount that was paid, with --settle.")
@click.option("--cancel", metavar="ID", help="Record that a reserved amount was not paid.")
@click.option(
    "--rebuild",
    metavar="USD",
    help="Set the amount spent this month, if it is lost; all computes it from the log.",
)
def budget(settle: str | None, amount: str | None, cancel: str | None, rebuild: str | None) -> None:
    """Show what was spent this month, what is left, and what is reserved.

    A reservation that remains after a crash counts as spent until --settle or --cancel. The data
    directory is TOOL_AGENT_DATA_DIR.  [default: data]
    """
    from arp.commands.tools_serving import show_budget

    given = [one for one in (settle, cancel, rebuild) if one is not None]
    if len(given) > 1 or (amount and not settle):
        fail("use --settle ID, --settle ID --amount USD, --cancel ID, or --rebuild USD")
    show_budget(settle, amount, cancel, rebuild)


@tools.command(context_settings=CONTEXT)
@click.option("--coder", help="Runtime that builds tools: claude-code, codex, or another name.")
@click.option("--host", default=None, help="Address to listen on.  [default: 127.0.0.1]")
@click.option("--port", type=click.IntRange(0, 65535), help="Port.  [default: 8001]")
@click.option("--ledger", help="Where facts are stored.  [default: sqlite:.arp/tools.db]")
@click.option("--token", help="Token that every client must send.  [env: ARP_TOKEN]")
@click.option("--no-token", is_flag=True, help="Create no token at the start.")
@click.option("--origin", "origins", multiple=True, help="Web origin whose pages may connect.")
@click.option("--allow-host", "hosts", multiple=True, help="Host name of the server for clients.")
@click.option(
    "--stdio", is_flag=True, help="Serve the tools by MCP over standard input and output."
)
@click.option("-v", "--verbose", count=True, help="Log connections; twice: every frame.")
def serve(stdio: bool, coder: str | None, **flags: Any) -> None:
    r"""Serve the Tool Agent: its HTTP interface, MCP at /mcp, and a chat that builds tools.

    \b
      arp tools serve --coder claude-code

    Settings come from TOOL_AGENT_… variables and data/config.json; docs/tools.md lists them.
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


def _request(
    url: str, token: str | None, method: str, path: str, body: JsonObject | None = None
) -> JsonObject:
    """Send a request and return the answer; end with an error if it fails or is refused."""
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
    """Send a request and print the pieces of the answer."""
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
