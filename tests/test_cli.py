"""The command line: what is configured is merged, and what is wrong is said in one line."""

from __future__ import annotations

import asyncio
import json
import os
import re
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner, Result

import arp.server.ports.grpc_port  # noqa: F401 - loads Protocol Buffers: a process can do that once
from arp.access.oidc import Oidc
from arp.cli import main
from arp.commands.serve import serving
from arp.commands.serve.serve_settings import PORTS, ServeSettings, given_flags
from arp.commands.serve.serving_ports import OPENERS, open_ports
from arp.server.application import Application

GOOD = """
from arp import App, Turn

app = App(title="Good")

@app.agent
async def agent(turn: Turn) -> None:
    await turn.say("hi")
"""

Run = Callable[..., Result]


class Served:
    """What would have been served."""

    def __init__(self) -> None:
        self.application: Application | None = None
        self.address: tuple[str, int] | None = None
        self.ports: list[str] = []

    def serve(
        self, application: Application, listener: socket.socket, ready: Any, ports: Any
    ) -> bool:
        """Takes the place of the server."""
        self.application = application
        self.ports = [port.address for port in ports]
        for port in ports:
            asyncio.run(port.stop())
        self.address = listener.getsockname()[:2]
        ready()
        listener.close()
        return True


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> Served:
    found = Served()
    monkeypatch.setattr("arp.server.serve.serve", found.serve)
    return found


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, served: Served) -> Run:
    """Runs `arp serve` in an empty directory with a good `app.py`."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "modules", dict(sys.modules))
    for name in [name for name in os.environ if name.startswith("ARP_")]:
        monkeypatch.delenv(name)
    (tmp_path / "app.py").write_text(GOOD)

    def invoke(*arguments: str, command: str = "serve", **files: str) -> Result:
        for name, text in files.items():
            (tmp_path / f"{name}.py").write_text(text)
        return CliRunner().invoke(main, [command, *arguments], prog_name="arp")

    return invoke


def said(result: Result) -> str:
    """Return the one line that an error is."""
    lines = result.stderr.strip().splitlines()
    assert len(lines) == 1, result.stderr
    assert lines[0].startswith("arp: ")
    assert result.exit_code in (1, 2)
    told = lines[0].removeprefix("arp: ")
    assert not re.match(r"[a-z]+ ", told), "it begins with a capital, or with a name"
    assert told.endswith(".")
    return told


def test_every_way_in_is_named_when_it_is_ready(run: Run, served: Served, tmp_path: Path) -> None:
    """And Unix sockets speak what ARP_ENCODING says."""
    options = ("--unix", "d/s", "--dial", "unix:r", "--grpc", "0", "--port", "0")
    result = run("app.py", *options)
    lines = [re.sub(r"\d+$", "N", line) for line in result.stdout.splitlines()]
    assert lines == [
        "ARP on http://127.0.0.1:N",
        "ARP on grpc:127.0.0.1:N",
        "ARP dials unix:r",
        f"ARP on unix:{tmp_path}/d/s",
    ]
    assert served.ports == ["grpc:127.0.0.1:0", "unix:r", f"unix:{tmp_path}/d/s"]


def test_the_usual_socket_is_the_one_that_the_environment_names(
    run: Run, served: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ARP_SOCKET", f"{tmp_path}/d/usual")
    run("app.py", "--unix", "auto", "--port", "0")
    assert served.ports == [f"unix:{tmp_path}/d/usual"]


def test_an_encoding_that_sockets_do_not_have_is_refused(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ARP_ENCODING", "cbor")
    assert said(run("app.py")) == "ARP_ENCODING: expected msgpack or json, got 'cbor'."


def test_without_grpc_the_extra_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    state: Any = None
    monkeypatch.setitem(sys.modules, "grpc", None)
    for name in ("arp.server.ports.grpc_port", "arp.net.grpc_library"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    with pytest.raises(SystemExit):
        open_ports(state, ServeSettings(grpc="0"))
    assert 'install it: pip install "agent-rendering-protocol[grpc]".' in capsys.readouterr().err


def test_every_setting_of_a_port_opens_one() -> None:
    """`--stdio` is refused with the same settings."""
    assert list(OPENERS) == list(PORTS)


def test_connect_finds_the_socket_and_its_options(monkeypatch: pytest.MonkeyPatch) -> None:
    """`unix:` alone is the socket of the environment, or of the session."""
    calls: list[tuple[str, Any]] = []

    def run_terminal(url: str, **options: Any) -> int:
        calls.append((url, options["more"]))
        return 0

    monkeypatch.setattr("arp_terminal.connect.run", run_terminal)
    monkeypatch.delenv("ARP_SOCKET", raising=False)
    monkeypatch.setenv("XDG_RUNTIME_DIR", "/run/user/7")
    monkeypatch.setenv("ARP_ENCODING", "json")
    for arguments in (
        ["unix:"],
        ["unix:", "--session", "s1"],
        ["--listen", "unix:/x", "--encoding", "msgpack"],
        ["http://h:1"],
        ["http://h:1", "--dialect", "object"],
    ):
        CliRunner().invoke(main, ["connect", *arguments], prog_name="arp")
    assert calls == [
        ("unix:/run/user/7/arp-default", {"encoding": "json"}),
        ("unix:/run/user/7/arp-s1", {"encoding": "json"}),
        ("unix:/x", {"listen": True, "encoding": "msgpack"}),
        ("http://h:1", {}),
        ("http://h:1", {"dialect": "object"}),
    ]


# -- errors --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["nothing.py"], "There is no file nothing.py."),
        (["nothing"], "There is no file and no module 'nothing'."),
        (["nothing.deep"], "There is no file and no module 'nothing.deep'."),
        (["."], ". is a directory; name a file: ./app.py"),
        (["app.py:other"], "No App object named 'other' in app.py."),
        (["app.py:agent"], "No App object named 'agent' in app.py."),
        ([], "Give exactly one of TARGET, --runtime and --model"),
        (["app.py", "--port", "x"], "'x' is not a valid integer"),
        (["app.py", "--port", "70000"], "70000 is not in the range 0<=x<=65535"),
        (["app.py", "--host", "0.0.0.0"], "0.0.0.0 can be reached by others: set --token"),
        (["app.py", "--host", "::"], ":: can be reached by others"),
        (["app.py", "--config", "none.toml"], "none.toml: No such file or directory"),
        (["app.py", "--host", "127.0.0.1", "--port", "0", "--token"], "requires an argument"),
        (["app.py", "--unix", "x" * 200], "bytes, and the path of a socket has at most 103"),
        (["app.py", "--unix", "app.py"], "app.py: a file, not a socket; it is not replaced"),
        (["app.py", "--unix", "auto"], "write unix:PATH, or set ARP_SOCKET"),
        (["app.py", "--dial", "/x"], "--dial: expected unix:PATH, got '/x'"),
        (["app.py", "--grpc", "x"], "--grpc x: expected [HOST:]PORT, such as 7001"),
        (["app.py", "--grpc", "70000"], "--grpc 70000: expected [HOST:]PORT"),
        (["app.py", "--grpc", "1", "--grpc-key", "k"], "--grpc-cert and --grpc-key go together"),
        (["app.py", "--stdio", "--grpc", "1"], "one renderer; leave --grpc out"),
        (["app.py", "--stdio", "--unix", "x", "--dial", "unix:x"], "leave --dial and --unix out"),
        (["app.py", "--host", ""], "--host: expected an address, got ''"),
        (
            ["app.py", "--token", ""],
            "--token: expected a text without spaces and control characters",
        ),
        (
            ["app.py", "--origin", "example.org"],
            "--origin: expected an origin without a path, as https://example.org, got 'example.o",
        ),
        (["app.py", "--origin", "https://example.org/page"], "without a path, as https://"),
        (["app.py", "--origin", "*"], "--origin: expected an origin without a path"),
        (
            ["app.py", "--allow-host", "http://example.org"],
            "--allow-host: expected a host name without scheme and port, as agents.example.org",
        ),
        (["app.py", "--allow-host", "example.org:80"], "without scheme and port"),
        (["app.py", "--allow-host", "a.example"], "a.example can be reached by others: set --tok"),
        (["app.py", "--host", "192.0.2.1"], "192.0.2.1 can be reached by others: set --token"),
        (
            ["app.py", "--host", "0.0.0.0", "--trust-proxy", "10.0.0.1"],
            "0.0.0.0 can be reached by others: set --token",
        ),
        (
            ["app.py", "--debug", "--trust-proxy", "10.0.0.1"],
            "so it cannot be combined with --trust-proxy; leave one of the two out",
        ),
        (
            ["app.py", "--trust-proxy", "proxy.example"],
            "--trust-proxy: expected an address or a network, as 10.0.0.7 or 10.0.0.0/8, got 'pro",
        ),
        (["app.py", "--trust-proxy", "10.0.0.0/40"], "--trust-proxy: Access.trusted_proxies: exp"),
        (["app.py", "--host", "grün.example", "--token", "t"], "--host grün.example: Access.hosts"),
    ],
)
def test_wrong_argument_is_told_in_one_line(run: Run, arguments: list[str], says: str) -> None:
    """style.md: what was wrong, where, and what to do; never a traceback."""
    assert says in said(run(*arguments))


def test_option_that_there_is_not_is_named(run: Run) -> None:
    """What stands between the words differs by click's version."""
    told = said(run("app.py", "--bogus"))
    assert "No such option" in told
    assert "--bogus" in told


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (
            "x = 1",
            (
                'No App object in bad.py; write "app = App(…)" or name it, '
                'as in "arp serve bad.py:NAME".'
            ),
        ),
        (
            "from arp import App\none = App()\ntwo = App()",
            'Several App objects in bad.py (one, two); name one, as in "arp serve bad.py:NAME".',
        ),
        (
            "from arp import App\napp = App()",
            "The App in bad.py has no agent; write @app.agent above",
        ),
        ("1 / 0", "bad.py cannot be loaded: ZeroDivisionError: division by zero ("),
        ("def f(:\n  pass", "bad.py cannot be loaded: SyntaxError: invalid syntax ("),
        ("import nothing_there", "ModuleNotFoundError: No module named 'nothing_there' ("),
        ("raise ValueError('one\\ntwo')", "bad.py cannot be loaded: ValueError: one ("),
        ("raise SystemExit(3)", "bad.py cannot be loaded: SystemExit: 3 ("),
        ("raise KeyError", "bad.py cannot be loaded: KeyError ("),
        (
            GOOD + "\n@app.agent\nasync def agent(turn): ...",
            "ValueError: there is an agent 'agent' already; give this one another name",
        ),
    ],
)
def test_file_that_cannot_be_served_is_told_in_one_line(run: Run, text: str, says: str) -> None:
    """With the author's own file and line, where there is one."""
    line = said(run("bad.py", bad=text))
    assert says in line
    if "(" in says[-1]:
        assert re.search(r"bad\.py:\d+\)\.$", line)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (
            "[serve]\nprot = 1",
            "[serve] prot: there is no such setting; there are allow-host, base-url, cwd,",
        ),
        ("[serve]\nport = 'x'", "[serve] port: expected a number from 0 to 65535, got 'x'"),
        ("[serve]\nport = 70000", "[serve] port: expected a number from 0 to 65535, got 70000"),
        ("[serve]\nhost = 5", "[serve] host: expected an address, got 5"),
        ("[serve]\nstdio = 'maybe'", "[serve] stdio: expected true or false, got 'maybe'"),
        ("[serve]\norigin = [1]", "[serve] origin: expected an origin without a path, as https:"),
        ("[serve]\norigin = 5", "[serve] origin: expected an origin without a path, as https:"),
        ("[serve]\norigin = 'example.org'", "as https://example.org, got 'example.org'"),
        ("[serve]\ntoken = 'two words'", "[serve] token: expected a text without spaces and"),
        ("[server]\nport = 0", "there is no [serve] table in it; write [serve] and"),
        ("serve = 3", "serve: expected a table; write [serve] and the settings below it"),
        ("[serve", "(at end of document)"),
        (b"\xff\xfe", "codec can't decode"),
    ],
)
def test_wrong_config_file_is_told_in_one_line(
    run: Run, tmp_path: Path, text: str | bytes, says: str
) -> None:
    """With the file's name."""
    data = text if isinstance(text, bytes) else text.encode()
    (tmp_path / "arp.toml").write_bytes(data)
    line = said(run("app.py", "--config", "arp.toml"))
    assert line.startswith("arp.toml: ")
    assert says in line


@pytest.mark.parametrize(
    ("arguments", "config", "environment", "named"),
    [
        (["--debug", "--host", "127.0.0.1"], "", {}, "--host"),
        (["--debug", "--host", "0.0.0.0", "--token", "t"], "", {}, "--host"),
        (["--debug", "--allow-host", "a.example.org"], "", {}, "--allow-host"),
        (["--debug"], "host = '10.0.0.1'", {}, "--host"),
        (["--allow-host", "a.example.org"], "debug = true", {}, "--allow-host"),
        (["--debug"], "", {"ARP_HOST": "10.0.0.1"}, "--host"),
    ],
)
def test_tracebacks_are_not_shown_where_others_can_come_in(
    run: Run,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    config: str,
    environment: dict[str, str],
    named: str,
) -> None:
    """Wherever the two are set."""
    (tmp_path / "arp.toml").write_text(f"[serve]\n{config}\n")
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert said(run("app.py", "--config", "arp.toml", *arguments)) == (
        f"--debug shows tracebacks to every client, so it cannot be combined with {named}; "
        "leave one of the two out."
    )


def test_tracebacks_are_not_shown_where_the_app_lets_others_in(run: Run) -> None:
    text = GOOD.replace("App(", "App(access=Access(hosts=('a.example.org',)), ", 1)
    line = said(run("own.py", "--debug", own=f"from arp import Access\n{text}"))
    assert "so it cannot be combined with App(access=Access(hosts=…))" in line


@pytest.mark.parametrize("port", ["x", "70000", "-1"])
def test_wrong_environment_is_told_in_one_line(
    run: Run, monkeypatch: pytest.MonkeyPatch, port: str
) -> None:
    """With the variable's name."""
    monkeypatch.setenv("ARP_PORT", port)
    assert said(run("app.py")) == f"ARP_PORT: expected a number from 0 to 65535, got '{port}'."


@pytest.mark.parametrize("token", ["two words", "line\nbreak", "\t", "nul\x00"])
def test_token_that_no_header_carries_is_refused_without_repeating_it(run: Run, token: str) -> None:
    """A refusal may end in a log; the token must not."""
    line = said(run("app.py", "--token", token))
    assert line == "--token: expected a text without spaces and control characters."


def test_unknown_command_is_told_in_one_line(run: Run) -> None:
    """With where to look."""
    assert said(run(command="fly")) == "No such command 'fly'. See arp --help."


def test_busy_port_that_was_named_is_told_with_a_way_out(run: Run) -> None:
    """Nothing else is tried."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        line = said(run("app.py", "--port", str(port)))
    assert line == (
        f"Port {port} is taken. Name another with --port, or take any free one with --port 0."
    )


def test_address_that_is_not_here_is_told(run: Run) -> None:
    """The system's own word for it."""
    line = said(run("app.py", "--host", "192.0.2.1", "--token", "t", "--port", "0"))
    assert line.startswith("Cannot listen on 192.0.2.1:0: ")


# -- settings ------------------------------------------------------------------------------------


def test_next_port_is_taken_where_none_was_named(
    run: Run, served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And the user is told, when it serves."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        monkeypatch.setattr(serving, "DEFAULT_PORT", port)
        result = run("app.py")
    assert result.exit_code == 0
    assert served.address is not None
    assert port < served.address[1] <= port + 19
    assert f"Port {port} is taken, so this is port {served.address[1]}" in result.stderr
    assert result.stdout == f"ARP on http://127.0.0.1:{served.address[1]}\n"


def test_no_free_port_at_all_is_told(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """After the ports that are tried."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        monkeypatch.setattr(serving, "DEFAULT_PORT", port)
        monkeypatch.setattr(serving, "PORTS_TRIED", 1)
        assert said(run("app.py")).startswith(f"Port {port} is taken. Name another")


def ledger_of(served: Served) -> str:
    assert served.application is not None
    return served.application.state.served.ledger


def test_file_is_less_than_environment_is_less_than_flag(
    run: Run, served: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """style.md: file < environment `ARP_…` < flag, each setting by itself."""
    config = "[serve]\nport = 0\nledger = 'memory:'\ntoken = 'file'\norigin = 'https://a.example'"
    (tmp_path / "arp.toml").write_text(config)
    run("app.py", "--config", "arp.toml")
    assert served.application is not None
    access = served.application.state.served.access
    from_file = (ledger_of(served), access.token, access.origins)
    monkeypatch.setenv("ARP_LEDGER", "sqlite:env.db")
    monkeypatch.setenv("ARP_TOKEN", "env")
    run("app.py", "--config", "arp.toml")
    from_environment = (ledger_of(served), served.application.state.served.access.token)
    run("app.py", "--config", "arp.toml", "--ledger", "sqlite:flag.db", "--token", "flag")
    from_flags = (ledger_of(served), served.application.state.served.access.token)
    assert from_file == ("memory:", "file", ("https://a.example",))
    assert from_environment == ("sqlite:env.db", "env")
    assert from_flags == ("sqlite:flag.db", "flag")


def test_flag_with_an_empty_value_is_given_and_a_default_is_not() -> None:
    @click.command()
    @click.option("--port", type=int)
    @click.option("--token")
    @click.option("--origin", multiple=True)
    @click.option("--otel", is_flag=True)
    @click.option("--no-redact", "redact", flag_value=False, default=None)
    @click.option("--verbose", count=True)
    def command(**flags: Any) -> None:
        click.echo(json.dumps(given_flags(flags)))

    def given(*arguments: str) -> Any:
        return json.loads(CliRunner().invoke(command, arguments).output)

    assert given() == {}
    assert given("--port", "0", "--token", "") == {"port": 0, "token": ""}
    assert given("--origin", "a", "--otel") == {"origin": ["a"], "otel": True}
    assert given("--no-redact", "--verbose") == {"redact": False, "verbose": 1}


TOKEN = (
    "Users need the token: open http://127.0.0.1:PORT/#token=… with the token instead of the dots."
)
KEPT = "Sessions are kept in .arp/app.db."
NAMES = "From other machines it answers only to names that you give with --allow-host NAME."


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        ([], [KEPT]),
        (["--ledger", "memory:"], []),
        (["--ledger", "sqlite:mine.db"], []),
        (["--token", "sesame"], [KEPT, TOKEN]),
        (["--token", "sesame", "--host", "0.0.0.0"], [KEPT, NAMES, TOKEN]),
        (
            ["--token", "sesame", "--host", "0.0.0.0", "--allow-host", "a.example.org"],
            [KEPT, TOKEN],
        ),
    ],
)
def test_who_starts_it_is_told_how_to_get_in_and_never_the_token(
    run: Run, served: Served, flags: list[str], says: list[str]
) -> None:
    """What the page asks for is what the server told."""
    result = run("app.py", "--port", "0", *flags)
    assert served.address is not None
    port = str(served.address[1])
    expected = [f"arp: {line}".replace("PORT", port) for line in says]
    assert result.stderr.splitlines() == expected
    assert "sesame" not in result.output


OIDC = ("--oidc-issuer", "https://login.example.org", "--oidc-client-id", "arp")


def test_login_at_a_provider_is_set_by_flags_and_its_secret_by_the_environment(
    run: Run, served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ARP_OIDC_CLIENT_SECRET", "sesame")
    more = ("--oidc-admin", "groups=ops", "--public-url", "https://agents.example.org")
    result = run("app.py", "--port", "0", *OIDC, *more)
    assert served.application is not None
    assert served.application.state.served.access.oidc == Oidc(
        "https://login.example.org",
        "arp",
        "sesame",
        admin="groups=ops",
        public_url="https://agents.example.org",
    )
    assert "arp: People sign in at https://login.example.org." in result.stderr
    assert "sesame" not in result.output


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (OIDC[:2], "needs both --oidc-issuer and --oidc-client-id"),
        (("--oidc-issuer", "http://x.example", *OIDC[2:]), "Oidc.issuer: expected https://"),
        (("--oidc-issuer", "x", *OIDC[2:]), "--oidc-issuer: expected an address with https://"),
        ((*OIDC, "--oidc-admin", "ops"), "--oidc-admin: expected CLAIM=VALUE"),
        ((*OIDC, "--login-url", "/login"), "Access.oidc: is a login of its own"),
        (("--login-url", "//x.example"), "--login-url: expected a path as /login"),
        (("--logout-url", "javascript:x"), "--logout-url: expected a path as /login"),
    ],
)
def test_login_that_cannot_work_is_refused_at_the_start(
    run: Run, arguments: tuple[str, ...], says: str
) -> None:
    assert says in said(run("app.py", "--port", "0", *arguments))


def test_links_of_a_login_elsewhere_are_set_by_flags(run: Run, served: Served) -> None:
    links = ("--login-url", "/login?back={next}", "--logout-url", "https://x.example/out")
    run("app.py", "--port", "0", *links, "--sign-in-text", "Ask Ann.")
    assert served.application is not None
    access = served.application.state.served.access
    assert (access.login_url, access.logout_url) == ("/login?back={next}", "https://x.example/out")
    assert access.sign_in_text == "Ask Ann."


def test_server_with_tokens_may_be_reached_by_others_and_says_what_it_wants(
    run: Run, served: Served
) -> None:
    refused = run("app.py", "--host", "0.0.0.0", "--port", "0")
    assert "create tokens (arp token create)" in refused.stderr
    assert run_main("token", "create", "--user", "ann", "--ledger", "app.py").exit_code == 0
    result = run("app.py", "--host", "0.0.0.0", "--port", "0", "--allow-host", "a.example.org")
    assert result.exit_code == 0
    assert "Users need a token of arp token create: open http://127.0.0.1:" in result.stderr


def run_main(*arguments: str) -> Result:
    """Runs any command of `arp`."""
    return CliRunner().invoke(main, list(arguments))


def test_port_zero_of_a_flag_is_more_than_a_port_of_the_environment(
    run: Run, served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """0 is a value, not nothing."""
    monkeypatch.setenv("ARP_PORT", "1")
    result = run("app.py", "--port", "0", "--ledger", "memory:")
    assert result.exit_code == 0
    assert served.address is not None
    assert served.address[1] > 1


def test_empty_variable_of_the_environment_says_nothing(
    run: Run, served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As if it were not set."""
    monkeypatch.setenv("ARP_LEDGER", "")
    run("app.py", "--port", "0")
    assert ledger_of(served) == "sqlite:.arp/app.db"


def test_the_runtime_is_named_by_file_environment_and_flag(
    run: Run, served: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def named() -> str | None:
        assert served.application is not None
        return served.application.state.served.settings.runtime_id

    run("app.py", "--port", "0")
    assert named() is None
    (tmp_path / "arp.toml").write_text("[serve]\nport = 0\nruntime-id = 'file'\n")
    run("app.py", "--config", "arp.toml")
    assert named() == "file"
    monkeypatch.setenv("ARP_RUNTIME_ID", "env")
    run("app.py", "--config", "arp.toml")
    assert named() == "env"
    run("app.py", "--config", "arp.toml", "--runtime-id", "flag")
    assert named() == "flag"


@pytest.mark.parametrize("name", ["with space", "x" * 129, "läden"])
def test_a_name_of_a_runtime_that_is_none_is_refused(run: Run, name: str) -> None:
    result = run("app.py", "--runtime-id", name)
    assert result.exit_code != 0
    assert "--runtime-id: expected 1 to 128 printable ASCII characters" in result.stderr


@pytest.mark.parametrize(
    ("app", "flags", "ledger"),
    [
        ("App()", [], "sqlite:.arp/mine.db"),
        ("App(ledger='sqlite:own.db')", [], "sqlite:own.db"),
        ("App(ledger='sqlite:own.db')", ["--ledger", "memory:"], "memory:"),
        ("App()", ["--ledger", "memory:"], "memory:"),
    ],
)
def test_ledger_is_durable_unless_somebody_says_otherwise(
    run: Run, served: Served, app: str, flags: list[str], ledger: str
) -> None:
    """`arp serve` has a default of its own."""
    run("mine.py", "--port", "0", *flags, mine=GOOD.replace('App(title="Good")', app))
    assert ledger_of(served) == ledger


@pytest.mark.parametrize(
    ("flags", "host", "status"),
    [
        ([], "127.0.0.1:1", None),
        ([], "localhost", None),
        ([], "example.org", 421),
        (["--allow-host", "example.org", "--token", "t"], "example.org:99", None),
        (["--allow-host", "app.localhost"], "app.localhost:99", None),
        (["--host", "localhost"], "localhost:99", None),
    ],
)
def test_host_names_are_those_of_the_machine_and_those_named(
    run: Run, served: Served, flags: list[str], host: str, status: int | None
) -> None:
    """`--allow-host`."""
    run("app.py", "--port", "0", *flags)
    assert served.application is not None
    scope = {"type": "http", "headers": [(b"host", host.encode())]}
    refused = served.application.state.guard.check_source(scope)
    assert (refused.status if refused else None) == status


def test_proxies_that_are_trusted_come_from_flags_and_the_file(
    run: Run, served: Served, tmp_path: Path
) -> None:
    """With one, a name needs no token: only this machine is served."""
    (tmp_path / "arp.toml").write_text("[serve]\ntrust-proxy = '10.0.0.1'")
    run("app.py", "--port", "0", "--config", "arp.toml", "--allow-host", "example.org")
    assert served.application is not None
    from_file = served.application.state.served.access.trusted_proxies
    run("app.py", "--port", "0", "--trust-proxy", "10.0.0.0/8", "--trust-proxy", "::1")
    assert from_file == ("10.0.0.1",)
    assert served.application.state.served.access.trusted_proxies == ("10.0.0.0/8", "::1")


@pytest.mark.parametrize("target", ["app.py", "./app.py", "app.py:app", "app", "app:app"])
def test_target_is_a_file_or_a_module_with_or_without_a_name(
    run: Run, served: Served, target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`arp serve TARGET[:NAME]`."""
    monkeypatch.delitem(sys.modules, "app", raising=False)
    assert run(target, "--port", "0").exit_code == 0
    assert served.application is not None
    assert served.application.state.workflow == "agent"


def test_server_that_could_not_begin_ends_with_an_error(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The exit code says so."""

    def failing(_: Application, listener: socket.socket, *__: Any) -> bool:
        listener.close()
        return False

    monkeypatch.setattr("arp.server.serve.serve", failing)
    assert run("app.py", "--port", "0").exit_code == 1


# -- render --------------------------------------------------------------------------------------

_CHART = {
    "id": "c",
    "type": "chart",
    "props": {
        "type": "bar",
        "title": "Rain",
        "labels": ["Jan", "Feb"],
        "datasets": [{"label": "mm", "data": [3, 1]}],
    },
}


@pytest.mark.parametrize(
    ("level", "shown"),
    [
        ("minimal", "  Rain\n       mm\n  ---  --\n  Jan   3\n  Feb   1\n"),
        ("basic", "  Rain\n       mm\n  ───  ──\n  Jan   3\n  Feb   1\n"),
        ("standard", "  █ mm"),
    ],
)
def test_render_obeys_its_level_as_an_agent_side_does(level: str, shown: str) -> None:
    """protocol.md 3: chart, then table, then text; whatever the stream holds."""
    stream = "\n".join(json.dumps(one) for one in (_rendered(_CHART), _committed()))
    result = CliRunner().invoke(main, ["render", "--level", level], input=stream)
    assert result.exit_code == 0
    assert shown in result.stdout


def test_render_tells_of_a_component_that_cannot_be_degraded() -> None:
    """A broken agent gets a broken picture, never a traceback."""
    broken = {"id": "c", "type": "chart", "props": {"labels": 7}}
    stream = "\n".join(json.dumps(one) for one in (_rendered(broken), _committed()))
    result = CliRunner().invoke(main, ["render", "--level", "minimal"], input=stream)
    assert result.exit_code == 0
    assert result.stdout.startswith("  (chart cannot be read: component.props")


def _rendered(component: dict[str, Any]) -> dict[str, Any]:
    return {
        "v": 1,
        "type": "render",
        "session_id": "s",
        "turn_id": "t",
        "components": [component],
    }


def _committed() -> dict[str, Any]:
    return {"v": 1, "type": "commit", "session_id": "s", "turn_id": "t", "final": True}


# -- help ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("command", "teaches"),
    [
        ([], ["serve", "connect", "render", "One agent, every screen"]),
        (
            ["serve"],
            ["\n  arp serve app.py\n", "arp serve app.py:explorer --port 0\n", "ARP_LEDGER"],
        ),
        (["serve"], ["--stdio", "--reload", "--origin", "--config", "[default: 127.0.0.1]"]),
        (["connect"], ["arp connect http://127.0.0.1:8080\n", "--level", "--session"]),
        (["render"], ["my-agent --stdio | arp render\n", "--width"]),
    ],
)
@pytest.mark.parametrize("flag", ["--help", "-h"])
def test_help_teaches(command: list[str], teaches: list[str], flag: str) -> None:
    """Each command with examples that can be typed, each on its own line."""
    result = CliRunner().invoke(main, [*command, flag], prog_name="arp")
    assert result.exit_code == 0
    assert "\\b" not in result.output
    for text in teaches:
        assert text in re.sub(r"\n {4}(?=arp|my)", "\n  ", result.output)


@pytest.mark.parametrize("path", ["token create", "conformance store", "serve"])
def test_examples_in_a_help_text_keep_their_lines(path: str) -> None:
    """Commands of commands too."""
    printed = CliRunner().invoke(main, [*path.split(), "--help"]).output
    examples = [line for line in printed.splitlines() if line.startswith("    arp ")]
    assert len(examples) >= 2
    assert "\\b" not in printed


def test_every_option_says_what_it_does() -> None:
    """No option without a word."""
    context = click.Context(main)
    commands = [main.get_command(context, name) for name in main.list_commands(context)]
    options = [option for command in commands if command for option in command.params]
    silent = [
        option.name for option in options if isinstance(option, click.Option) and not option.help
    ]
    assert silent == []


def test_without_a_command_the_help_is_shown() -> None:
    """And the exit code says that nothing was done."""
    result = CliRunner().invoke(main, [], prog_name="arp")
    assert result.exit_code == 2
    assert "Commands:" in result.stderr


def test_version_is_told_without_an_installation() -> None:
    """From the package itself."""
    result = CliRunner().invoke(main, ["--version"], prog_name="arp")
    assert (result.exit_code, result.stdout) == (0, "arp 0.1.0\n")


def test_terminal_that_is_not_installed_is_told_with_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The terminal is an extra."""
    monkeypatch.setitem(sys.modules, "arp_terminal.connect", None)

    def missing(*_: Any) -> None:
        raise ModuleNotFoundError("No module named 'rich'", name="rich")

    class Finder:
        find_spec = staticmethod(missing)

    monkeypatch.delitem(sys.modules, "arp_terminal.connect")
    monkeypatch.setattr(sys, "meta_path", [Finder, *sys.meta_path])
    result = CliRunner().invoke(main, ["connect", "http://127.0.0.1:1"], prog_name="arp")
    assert result.exit_code == 1
    assert result.stderr == (
        "arp: The terminal needs rich; install it: "
        'pip install "agent-rendering-protocol[terminal]".\n'
    )


def test_interrupt_is_no_error_to_be_read(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C prints no traceback, and no word of a library."""

    def interrupted(_: Application, listener: socket.socket, *__: Any) -> bool:
        listener.close()
        raise KeyboardInterrupt

    monkeypatch.setattr("arp.server.serve.serve", interrupted)
    result = run("app.py", "--port", "0")
    assert result.exit_code == 130
    assert result.stderr.strip() == ""


def test_telemetry_is_off_until_a_flag_a_file_or_the_standard_variables_want_it(
    run: Run, served: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def wanted(*arguments: str) -> bool:
        run("app.py", *arguments)
        assert served.application is not None
        return served.application.state.served.settings.telemetry

    for name in [name for name in os.environ if name.startswith("OTEL_")]:
        monkeypatch.delenv(name)
    assert not wanted()
    assert wanted("--otel")
    (tmp_path / "arp.toml").write_text("[serve]\notel = true\n")
    assert wanted("--config", "arp.toml")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:4318")
    assert wanted()


def test_telemetry_that_is_asked_for_and_not_installed_says_what_to_install(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("arp.telemetry.settings.is_installed", lambda: False)
    result = run("app.py", "--otel")
    assert result.exit_code != 0
    assert result.stderr == (
        "arp: --otel needs OpenTelemetry; install it: "
        'pip install "agent-rendering-protocol[otel]".\n'
    )


def test_redaction_is_on_and_can_be_set_or_switched_off(
    run: Run, served: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STRIPE_KEY", "a-secret-of-the-process")
    run("app.py", "--token", "a-token-of-the-server")
    assert served.application is not None
    on = served.application.state.redaction()
    assert on.enabled
    assert {"a-secret-of-the-process", "a-token-of-the-server"} <= set(on.secrets)
    run("app.py", "--no-redact")
    assert not served.application.state.redaction().enabled
    config = tmp_path / "arp.toml"
    config.write_text(
        "[serve.redaction]\nenvironment = false\nfields = ['iban']\n"
        "[[serve.redaction.patterns]]\nname = 'acme'\nprefix = 'acme_'\n"
    )
    run("app.py", "--config", str(config))
    redaction = served.application.state.redaction()
    assert redaction.fields == ("iban",)
    assert redaction.secrets == ()
    assert [(one.name, one.prefix, one.least) for one in redaction.patterns] == [
        ("acme", "acme_", 16)
    ]


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("redaction = 3", "redaction: Expected `object | null`, got `int`"),
        ("[serve.redaction]\nfield = []", "redaction: Object contains unknown field `field`"),
        (
            "[[serve.redaction.patterns]]\nname = 'a'\nprefix = 'x'",
            r"redaction: Expected `str` matching regex '^\\S{2,64}\\Z' - at `$.patterns[0].prefix`",
        ),
    ],
)
def test_wrong_redaction_is_named(run: Run, tmp_path: Path, text: str, wrong: str) -> None:
    config = tmp_path / "arp.toml"
    config.write_text(text if text.startswith("[") else f"[serve]\n{text}")
    assert said(run("app.py", "--config", str(config))).endswith(f"[serve] {wrong}.")
