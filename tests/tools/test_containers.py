"""The table of containers, and the ports that are given."""

from __future__ import annotations

import socket
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from arp.tools.clock import Clock
from arp.tools.errors import (
    CapacityExceeded,
    InvalidToolMeta,
    ToolConflict,
    ToolRefused,
    UnknownTool,
)
from arp.tools.registry.models import ContainerInfo, ContainerStatus
from arp.tools.run.container_rules import (
    EnvRequest,
    container_options,
    memory_of,
    target_of,
    volume_of,
)
from arp.tools.run.containers import ContainerTable
from arp.tools.run.ports import RANGE, Ports
from arp.tools.settings import LiveSettings, ToolSettings


class Hands:
    """A clock that tests set."""

    at = datetime(2026, 3, 20, 10, tzinfo=UTC)

    def now(self) -> datetime:
        return self.at


def test_containers_are_added_used_and_gone(tmp_path: Path) -> None:
    hands = Hands()
    table = ContainerTable(tmp_path, Clock(now=hands.now))
    made = table.add(ContainerInfo("c1", port_mapping={"80": 9001}))
    assert made.created_at == made.last_accessed == hands.at
    with pytest.raises(ToolConflict):
        table.add(ContainerInfo("c1"))
    hands.at += timedelta(seconds=100)
    assert table.touch("c1").last_accessed == hands.at
    assert table.get("c1").created_at == made.created_at
    assert table.ports() == {9001}
    gone = table.record_destroyed("c1")
    hands.at += timedelta(seconds=1)
    assert table.record_destroyed("c1") == gone
    assert table.ports() == set()
    assert table.containers(ContainerStatus.RUNNING) == []
    for missing in ("c1", "c2"):
        with pytest.raises(UnknownTool):
            table.get(missing)


def test_containers_are_unused_after_their_time(tmp_path: Path) -> None:
    hands = Hands()
    table = ContainerTable(tmp_path, Clock(now=hands.now))
    table.add(ContainerInfo("c1"))
    hands.at += timedelta(seconds=9)
    assert table.unused_since(10) == []
    hands.at += timedelta(seconds=1)
    assert [one.container_id for one in table.unused_since(10)] == ["c1"]
    hands.at -= timedelta(days=30)  # a clock that is set back destroys nothing
    assert table.unused_since(10) == []


def test_the_newest_destroyed_containers_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("arp.tools.run.containers.KEPT_DESTROYED", 3)
    hands = Hands()
    table = ContainerTable(tmp_path, Clock(now=hands.now))
    table.add(ContainerInfo("runs"))
    for number in range(5):
        hands.at += timedelta(seconds=1)
        table.add(ContainerInfo(f"c{number}"))
        table.record_destroyed(f"c{number}")
    kept = [one.container_id for one in table.containers()]
    assert kept == ["runs", "c2", "c3", "c4"]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return min(port, 65000)


def test_ports_are_given_in_order_and_come_back() -> None:
    first = free_port()
    ports = Ports(lambda: first, lambda: {first})
    one, two = ports.allocate(), ports.allocate()
    assert first < one < two
    assert ports.allocated == {one, two}
    assert not ports.try_allocate(one)
    assert not ports.try_allocate(first)
    ports.release(one)
    ports.release(one)
    assert ports.allocate() == one
    assert ports.allocate(skip=[two + 1]) > two + 1


def test_a_port_that_somebody_listens_on_is_not_given() -> None:
    with socket.socket() as busy:
        busy.bind(("127.0.0.1", 0))
        busy.listen()
        first = busy.getsockname()[1]
        ports = Ports(lambda: first)
        assert ports.allocate() > first
        assert not ports.try_allocate(first)


def test_ports_can_be_used_up() -> None:
    ports = Ports(lambda: 20001, lambda: range(20001, 20001 + RANGE))
    with pytest.raises(CapacityExceeded, match="no port of 20001 to 22000 is free"):
        ports.allocate()


@pytest.fixture
def settings(tmp_path: Path) -> LiveSettings:
    shared = tmp_path / "shared"
    shared.mkdir()
    return LiveSettings(ToolSettings(data_dir=tmp_path / "data", volume_directories=[shared]))


@pytest.mark.parametrize(
    "host_dir",
    [
        *("/", "//", "/.", "/etc", "/proc", "/root", "/var/run", "/var/run/docker.sock", "/home"),
        *("", ".", "..", "relative", "~", "shared", "C:/staging/project", "\0", "/tmp:/x"),
        *("{tmp}", "{tmp}/data", "{tmp}/data/projects", "{tmp}/data/registry.json", "{tmp}/gone"),
        *("{tmp}/shared/../data", "{tmp}/shared/link", "{tmp}/shared/file", "{tmp}/shared2"),
        *("{tmp}/data/projects/a/sub", "{tmp}/data/projects/link", "{tmp}/data/projects/gone"),
        *("{tmp}/data/projects/../projects/a", "{tmp}/data/projects/a/up"),
    ],
)
def test_volumes_that_are_refused(tmp_path: Path, settings: LiveSettings, host_dir: str) -> None:
    project = tmp_path / "data" / "projects" / "a"
    (project / "sub").mkdir(parents=True)
    (project / "up").symlink_to("/")
    (project.parent / "link").symlink_to("/etc")
    (tmp_path / "shared" / "link").symlink_to("/etc")
    (tmp_path / "shared" / "file").write_text("x")
    (tmp_path / "shared2").mkdir()
    with pytest.raises(ToolRefused, match="volume"):
        volume_of(host_dir.replace("{tmp}", str(tmp_path)), settings)


def test_volumes_that_are_allowed(tmp_path: Path, settings: LiveSettings) -> None:
    project = tmp_path / "data" / "projects" / "a"
    project.mkdir(parents=True)
    below = tmp_path / "shared" / "b"
    below.mkdir()
    (tmp_path / "shared" / "inner").symlink_to(below)
    assert volume_of(str(project), settings) == str(project)
    assert volume_of(str(below), settings) == str(below)
    assert volume_of(str(tmp_path / "shared" / "inner"), settings) == str(below)


def test_our_own_files_are_not_mounted_by_a_directory_above_them(tmp_path: Path) -> None:
    settings = ToolSettings(data_dir=tmp_path / "data", volume_directories=[Path("/"), tmp_path])
    (tmp_path / "data" / "projects").mkdir(parents=True)
    for path in ("/", str(tmp_path), str(tmp_path / "data")):
        with pytest.raises(ToolRefused):
            volume_of(path, LiveSettings(settings))


@pytest.mark.parametrize("inside", ["/", "", "app", "/../x", "/proc", "/sys/fs", "/dev", "/a:b"])
def test_places_in_a_container_that_are_refused(inside: str) -> None:
    with pytest.raises(ToolRefused):
        target_of(inside)


@pytest.mark.parametrize(
    ("text", "size"), [("6m", 6 * 2**20), ("1g", 2**30), ("512M", 2**29), ("7000000", 7_000_000)]
)
def test_sizes_are_read(text: str, size: int) -> None:
    assert memory_of(text) == size


@pytest.mark.parametrize("text", ["", "g", "-1g", "1t", "1.5g", "5m", "9999g", "1 g", "٣g"])
def test_sizes_that_are_none_are_invalid(text: str) -> None:
    with pytest.raises(InvalidToolMeta, match="mem_limit"):
        memory_of(text)


@pytest.mark.parametrize(
    ("request_", "error"),
    [
        (EnvRequest(image="--privileged"), InvalidToolMeta),
        (EnvRequest(image="x y"), InvalidToolMeta),
        (EnvRequest(ports=[0]), InvalidToolMeta),
        (EnvRequest(ports=[80, 80]), InvalidToolMeta),
        (EnvRequest(ports=range(1, 30)), InvalidToolMeta),
        (EnvRequest(nano_cpus=10**15), InvalidToolMeta),
        (EnvRequest(nano_cpus=1), InvalidToolMeta),
        (EnvRequest(env={"LD_PRELOAD": "/x.so"}), ToolRefused),
        (EnvRequest(volumes={"/": "/host"}), ToolRefused),
        (EnvRequest(volumes={f"/{n}": "/x" for n in range(11)}), InvalidToolMeta),
    ],
)
def test_a_container_that_may_not_be_is_refused_before_the_engine_is_asked(
    settings: LiveSettings, request_: EnvRequest, error: type[Exception]
) -> None:
    with pytest.raises(error):
        container_options(request_, settings)
