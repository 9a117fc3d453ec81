"""Settings: defaults of the document, the environment, and overrides that hold when they change."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from arp.tools.budget import Purchase
from arp.tools.errors import DataFileDamaged, InvalidToolMeta
from arp.tools.service import ToolService
from arp.tools.settings import LiveSettings, ToolSettings, docker_environment, package_environment

DOCUMENT = {
    "fastapi_port": 8001,
    "mcp_port": 8001,
    "docker_port_start": 9001,
    "docker_base_image": "agent-sandbox:latest",
    "docker_mem_limit": "1g",
    "docker_nano_cpus": 1000000000,
    "docker_ttl_seconds": 1800,
    "cold_tool_idle_timeout_s": 300,
    "hot_tool_max_containers": 5,
    "eviction_policy": "lru",
    "monthly_limit_usd": 100.0,
    "single_tx_limit_usd": 20.0,
    "require_approval_above_usd": 10.0,
    "health_check_interval_s": 60,
}

CONFIG = {
    "cold_tool_idle_timeout_s": 300,
    "hot_tool_max_containers": 5,
    "eviction_policy": "lru",
    "budget": {
        "monthly_limit_usd": 100,
        "single_tx_limit_usd": 20,
        "require_approval_above_usd": 10,
        "spent_this_month_usd": 0,
    },
}


def live(folder: Path, config: object = None) -> LiveSettings:
    if config is not None:
        write(folder, config)
    return LiveSettings(ToolSettings(data_dir=folder))


def write(folder: Path, config: object) -> None:
    text = config if isinstance(config, str) else json.dumps(config)
    (folder / "config.json").write_text(text)


def test_the_defaults_are_those_of_the_document() -> None:
    """Section 9."""
    settings = ToolSettings().model_dump()
    assert {name: settings[name] for name in DOCUMENT} == DOCUMENT
    assert settings["data_dir"] == Path("data")


def test_the_environment_has_the_prefix(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TOOL_AGENT_FASTAPI_PORT", "9100")
    monkeypatch.setenv("TOOL_AGENT_DATA_DIR", str(tmp_path))
    monkeypatch.setenv("TOOL_AGENT_API_PRIVATE_HOSTS", '["10.0.0.0/8"]')
    settings = LiveSettings()
    assert settings.current.fastapi_port == 9100
    assert settings.data_dir == tmp_path
    assert settings.current.api_private_hosts == ["10.0.0.0/8"]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("FASTAPI_PORT", "x"), ("FASTAPI_PORT", "70000"), ("HOT_TOOL_MAX_CONTAINERS", "0")),
        *(("EVICTION_POLICY", "fifo"), ("MONTHLY_LIMIT_USD", "-1"), ("MONTHLY_LIMIT_USD", "nan")),
        *(("GIT_HOSTS", "github.com"), ("GIT_HOSTS", ""), ("GIT_HOSTS", "{}")),
        *(("SINGLE_TX_LIMIT_USD", "inf"), ("SANDBOX", "maybe"), ("DOCKER_NANO_CPUS", "1.5")),
    ],
)
def test_a_variable_that_cannot_be_is_named(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv(f"TOOL_AGENT_{name}", value)
    with pytest.raises(InvalidToolMeta, match=name.lower()):
        LiveSettings()


def test_the_config_of_the_document_is_read(tmp_path: Path) -> None:
    settings = live(tmp_path, CONFIG)
    assert settings.current == ToolSettings(data_dir=tmp_path)
    assert settings.problem is None


def test_a_change_of_the_config_holds_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOOL_AGENT_HOT_TOOL_MAX_CONTAINERS", "7")
    settings = live(tmp_path)
    assert settings.current.hot_tool_max_containers == 7
    write(tmp_path, {"hot_tool_max_containers": 2, "budget": {"monthly_limit_usd": 55.5}})
    assert settings.current.hot_tool_max_containers == 2
    assert settings.current.monthly_limit_usd == 55.5
    (tmp_path / "config.json").unlink()
    assert settings.current.hot_tool_max_containers == 7


@pytest.mark.parametrize(
    ("config", "problem"),
    [
        *(("{", "cannot be read"), ("", "cannot be read"), ("[]", "not a JSON object")),
        ({"hot_tools": 3}, "hot_tools"),
        ({"hot_tool_max_containers": "many"}, "hot_tool_max_containers"),
        ({"budget": 5}, "not a JSON object"),
        ({"budget": {"monthly_limit_usd": -5}}, "monthly_limit_usd"),
        ({"data_dir": "/elsewhere"}, "TOOL_AGENT_DATA_DIR"),
        ("[" * 100_000, "cannot be read"),
        ("x" * (2**20 + 1), "more than"),
    ],
)
def test_an_invalid_config_changes_nothing_and_is_reported(
    tmp_path: Path, config: object, problem: str, caplog: pytest.LogCaptureFixture
) -> None:
    settings = live(tmp_path, {"hot_tool_max_containers": 2})
    assert settings.current.hot_tool_max_containers == 2
    write(tmp_path, config)
    for _ in range(3):
        assert settings.current.hot_tool_max_containers == 2
    assert settings.problem is not None
    assert problem in settings.problem
    assert len(caplog.records) == 1
    write(tmp_path, {})
    assert settings.current.hot_tool_max_containers == 5
    assert settings.problem is None


def test_an_index_with_a_password_is_not_handed_to_projects(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("UV_INDEX_URL", "UV_DEFAULT_INDEX", "PIP_INDEX_URL", "HTTPS_PROXY", "UV_INDEX"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("UV_INDEX_URL", "https://me:secret@index.example/simple")
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy.example:3128")
    found = package_environment()
    assert "UV_INDEX_URL" not in found
    assert found["HTTPS_PROXY"] == "http://proxy.example:3128"
    monkeypatch.setenv("ANTHROPIC_API_KEY", "secret")
    assert "secret" not in str(package_environment()) + str(docker_environment())


def test_a_secret_is_not_in_the_text_of_the_settings() -> None:
    assert "hush" not in repr(ToolSettings(callback_secret="hush"))


async def test_service_does_not_start_with_a_config_that_it_cannot_read(tmp_path: Path) -> None:
    """Its limits would be the defaults, which may be higher."""
    (tmp_path / "config.json").write_text('{"budget": {"monthly_limit_usd": 5')
    service = ToolService(LiveSettings(ToolSettings(data_dir=tmp_path)))
    with pytest.raises(InvalidToolMeta, match=r"config\.json .*; mend it, or move it away"):
        await service.start()
    (tmp_path / "config.json").unlink()
    async with service:
        assert service.settings.current.monthly_limit_usd > 5


async def test_service_starts_and_spends_nothing_without_the_state_of_its_budget(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "billing_state.json").write_text("{")
    async with ToolService(LiveSettings(ToolSettings(data_dir=tmp_path))) as service:
        with pytest.raises(DataFileDamaged, match="the spending of this month is unknown"):
            await service.budget.spend(Purchase("a", 1))
    assert "nothing can be spent: " in caplog.text
