"""A runtime behind TLS; and a token that nobody else can read on its way."""

from __future__ import annotations

import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from arp.access.settings import Access
from arp.runtime.contract import types as ari
from arp.runtime.contract.errors import InvalidArgument, Unavailable
from arp.runtime.named import named_runtime
from arp.runtime.remote.grpc_runtime import GrpcRuntime
from arp.runtime.remote.grpc_server import GrpcServer
from arp.runtime.remote.http_runtime import HttpRuntime
from arp.runtime.remote.tls import TlsFiles
from arp.testing import FakeRuntime
from tests.runtime.certificates import certificates

REFUSED = "the token would be sent to agents.example.org without TLS"

Remote = type[GrpcRuntime] | type[HttpRuntime]


async def test_grpc_with_tls_for_clients_that_know_the_authority(tmp_path: Path) -> None:
    files = certificates(tmp_path)
    other = certificates(tmp_path_of(tmp_path, "other"))
    server = GrpcServer(FakeRuntime(), Access(token="s3cret"))
    port = await server.start(tls=TlsFiles(files.certificate, files.key))
    try:
        address = f"grpcs://localhost:{port}"
        for ca in (files.ca, "", other.ca):
            remote = GrpcRuntime(address, token="s3cret", ca=ca)
            if ca == files.ca:
                assert (await remote.version(ari.VersionRequest())).runtime_name == "fake"
            else:
                with pytest.raises(Unavailable, match="version: "):
                    await remote.version(ari.VersionRequest())
            await remote.close()
        environment = {"ARP_RUNTIME_TOKEN": "s3cret", "ARP_RUNTIME_CA": files.ca}
        named = named_runtime(address, environment=environment)
        assert (await named.version(ari.VersionRequest())).runtime_name == "fake"
        await named.close(ari.CloseRequest())
        without = GrpcRuntime(f"grpc://localhost:{port}", token="s3cret")
        with pytest.raises(Unavailable, match="version: "):
            await without.version(ari.VersionRequest())
        await without.close()
    finally:
        await server.stop()


def tmp_path_of(place: Path, name: str) -> Path:
    below = place / name
    below.mkdir()
    return below


@pytest.mark.parametrize(
    ("remote", "address"),
    [
        (GrpcRuntime, "agents.example.org:7001"),
        (GrpcRuntime, "grpc://agents.example.org:7001"),
        (HttpRuntime, "http://agents.example.org:7002"),
    ],
)
async def test_token_without_tls_stays_on_this_machine(remote: Remote, address: str) -> None:
    with pytest.raises(InvalidArgument, match=REFUSED):
        remote(address, token="s3cret")
    for allowed in (
        remote(address),
        remote(address, token="s3cret", plaintext=True),
        remote(address.replace("agents.example.org", "127.0.0.1"), token="s3cret"),
        remote(address.replace("agents.example.org", "localhost"), token="s3cret"),
        remote(address.replace("agents.example.org", "[::1]"), token="s3cret"),
    ):
        await allowed.close()


@pytest.mark.parametrize("remote", [GrpcRuntime, HttpRuntime])
async def test_proxy_does_not_see_what_is_for_this_machine(
    remote: Remote, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as proxy:
        port = proxy.getsockname()[1]
        for name in ("http_proxy", "HTTP_PROXY", "https_proxy", "all_proxy"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{port}")
        scheme = "grpc" if remote is GrpcRuntime else "http"
        client = remote(f"{scheme}://localhost:1", token="s3cret")
        with pytest.raises(Unavailable):
            await client.version(ari.VersionRequest())
        await client.close()
        proxy.setblocking(False)
        with pytest.raises(BlockingIOError):
            proxy.accept()


@pytest.mark.parametrize("address", ["grpc://agents.example.org:7001", "http://agents.example.org"])
async def test_variable_says_that_a_tunnel_protects_the_token(address: str) -> None:
    token = {"ARP_RUNTIME_TOKEN": "s3cret", "ARP_RUNTIME_CA": "of-another"}
    for said in ("", "0", "yes"):
        with pytest.raises(InvalidArgument, match=REFUSED):
            named_runtime(address, environment=token | {"ARP_RUNTIME_PLAINTEXT": said})
    remote = named_runtime(address, environment=token | {"ARP_RUNTIME_PLAINTEXT": "1"})
    await remote.close(ari.CloseRequest())


@pytest.mark.parametrize(
    "made",
    [
        lambda ca: GrpcRuntime("grpcs://localhost:1", ca=ca),
        lambda ca: HttpRuntime("https://localhost:1", ca=ca),
    ],
)
def test_authorities_that_cannot_be_used_are_told(
    made: Callable[[str], object], tmp_path: Path
) -> None:
    (tmp_path / "empty.pem").touch()
    for name in ("none.pem", "empty.pem"):
        with pytest.raises(InvalidArgument, match=f"ca: .*{name} cannot be used"):
            made(str(tmp_path / name))


@pytest.mark.parametrize(
    "made",
    [
        lambda ca: GrpcRuntime("localhost:1", ca=ca),
        lambda ca: HttpRuntime("http://localhost:1", ca=ca),
    ],
)
def test_authorities_are_for_tls_alone(made: Callable[[str], object]) -> None:
    with pytest.raises(
        InvalidArgument, match=r"ca: ca\.pem is for TLS: write https:// or grpcs://"
    ):
        made("ca.pem")


async def test_files_of_a_server_that_cannot_be_used_are_told(tmp_path: Path) -> None:
    files = certificates(tmp_path)
    other = certificates(tmp_path_of(tmp_path, "other"))
    for wrong in (
        TlsFiles(files.certificate, other.key),
        TlsFiles(files.key, files.key),
        TlsFiles(files.certificate, str(tmp_path / "none")),
    ):
        with pytest.raises(InvalidArgument, match="are no certificate and its key"):
            await GrpcServer(FakeRuntime()).start(tls=wrong)
