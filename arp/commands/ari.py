"""`arp ari`: the command `serve`, which serves a runtime to other programs."""

from __future__ import annotations

import os

import click

from arp.commands.output import CONTEXT


@click.group(context_settings=CONTEXT)
def ari() -> None:
    """Agent Runtime Interface: serve an agent that exists already to other programs."""


@ari.command(context_settings=CONTEXT)
@click.option(
    "--runtime",
    required=True,
    metavar="NAME",
    help='Runtime to serve: claude-code, codex, acp:"COMMAND", or module:NAME.',
)
@click.option("--grpc", metavar="[HOST]:PORT", help="Address for gRPC; :0 = any free port.")
@click.option("--http", metavar="[HOST]:PORT", help="Address for HTTP; :0 = any free port.")
@click.option("--cwd", default=".", help="Working directory of agents.  [default: this one]")
@click.option("--mode", default="", help="Default mode of new sessions.")
@click.option("--runtime-model", default="", help="Default model of new sessions.")
@click.option(
    "--pass-env",
    "passed",
    multiple=True,
    metavar="NAME",
    help="Additional environment variable for agents; NAME* for several.",
)
@click.option("--token", help="Token that every client must send.  [env: ARP_TOKEN]")
@click.option("--no-token", is_flag=True, help="Create no token at the start.")
@click.option("--tls-cert", default="", metavar="FILE", help="Certificate as PEM, for TLS.")
@click.option("--tls-key", default="", metavar="FILE", help="Key of the certificate as PEM.")
@click.option(
    "--allow-host",
    "hosts",
    multiple=True,
    help="Host name under which HTTP clients reach the server. Repeatable.",
)
@click.option("-v", "--verbose", count=True, help="Log connections; twice: everything.")
def serve(
    runtime: str,
    grpc: str | None,
    http: str | None,
    cwd: str,
    mode: str,
    runtime_model: str,
    passed: tuple[str, ...],
    token: str | None,
    no_token: bool,
    tls_cert: str,
    tls_key: str,
    hosts: tuple[str, ...],
    verbose: int,
) -> None:
    """Serve a runtime over gRPC, HTTP or both.

    \b
      arp ari serve --runtime codex --grpc :7001 --http :7002
      arp ari serve --runtime claude-code --http 0.0.0.0:7002 --allow-host agents.example.org \
        --tls-cert cert.pem --tls-key key.pem

    A port without a host can be reached only from this machine; every other address needs a token.
    If the runtime runs commands and there is no token, each start creates and prints one.
    """  # noqa: D301 - click needs the escape character itself
    from arp.commands.ari_serving import AriSettings, serve_runtime

    settings = AriSettings(
        runtime=runtime,
        grpc=grpc,
        http=http,
        cwd=cwd,
        mode=mode,
        model=runtime_model,
        passed=passed,
        token=os.environ.get("ARP_TOKEN") or None if token is None else token,
        no_token=no_token,
        tls_cert=tls_cert,
        tls_key=tls_key,
        hosts=hosts,
        verbose=verbose,
    )
    serve_runtime(settings)
