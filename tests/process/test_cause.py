"""Of what a program writes at its end, the line that names the cause."""

from __future__ import annotations

import pytest

from arp.process.cause import cause_of, is_about_arguments

PYTHON = """Traceback (most recent call last):
File "agent.py", line 3, in <module>
json.loads("")
json.decoder.JSONDecodeError: Expecting value: line 1 column 1 (char 0)
During handling of the above exception, another exception occurred:
Traceback (most recent call last):
File "agent.py", line 5, in <module>
ValueError: config.json is empty
Sentry is attempting to send 1 pending events
Press Ctrl-C to quit"""

NODE = """node:internal/modules/cjs/loader:1408
throw err;
^
Error: Cannot find module '/opt/agent/index.js'
at Function._resolveFilename (node:internal/modules/cjs/loader:1405:15)
at defaultResolveImpl (node:internal/modules/cjs/loader:1061:19) {
code: 'MODULE_NOT_FOUND',
requireStack: []
}
Node.js v22.21.1"""

CLAP = """error: unexpected argument '--acp' found
tip: to pass '--acp' as a value, use '-- --acp'
Usage: agent [OPTIONS]
For more information, try '--help'."""

RUST = """thread 'main' panicked at src/main.rs:7:5:
the configuration has no model
note: run with `RUST_BACKTRACE=1` environment variable to display a backtrace"""

YARGS = """agent [query..]
Options:
--model  The model  [string]
--version  Show the version  [boolean]
Unknown argument: acp"""


@pytest.mark.parametrize(
    ("lines", "cause"),
    [
        (PYTHON, "ValueError: config.json is empty"),
        (NODE, "Error: Cannot find module '/opt/agent/index.js'"),
        (CLAP, "error: unexpected argument '--acp' found"),
        (
            RUST,
            "thread 'main' panicked at src/main.rs:7:5: the configuration has no model",
        ),
        (YARGS, "Unknown argument: acp"),
        ("starting\nconnection refused by 127.0.0.1:9\nbye", "connection refused by 127.0.0.1:9"),
        ("Error:\nkey is missing\nbye", "Error: key is missing"),
        ("one\ntwo", "two"),
        ("Traceback (most recent call last):\n^C", "^C"),
        ("", ""),
    ],
    ids=["python", "node", "clap", "rust", "yargs", "telling", "next", "last", "cut", "none"],
)
def test_cause_of(lines: str, cause: str) -> None:
    assert cause_of(lines.splitlines()) == cause


def test_line_about_an_argument_that_is_not_known() -> None:
    assert is_about_arguments("error: unrecognized subcommand 'app-server'")
    assert is_about_arguments("Unknown arguments: acp, experimental-acp")
    assert not is_about_arguments("Error: unknown model")
