"""Telemetry is off until somebody says where it goes, and its absence stops nobody."""

from __future__ import annotations

import logging
import subprocess
import sys

import pytest

from arp.telemetry import settings
from arp.telemetry.follower import Follower
from arp.telemetry.settings import is_configured
from tests.control.control_rig import controlled


@pytest.mark.parametrize(
    ("environment", "configured"),
    [
        ({}, False),
        ({"OTEL_SERVICE_NAME": "sales"}, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector:4318"}, True),
        ({"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT": "http://collector:4318"}, True),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": " "}, False),
        ({"OTEL_TRACES_EXPORTER": "console"}, True),
        ({"OTEL_TRACES_EXPORTER": "none"}, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c", "OTEL_SDK_DISABLED": "True"}, False),
    ],
)
def test_standard_variables_switch_it_on(environment: dict[str, str], configured: bool) -> None:
    assert is_configured(environment) is configured


async def test_without_the_extra_the_log_says_so_and_the_hub_serves(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(settings, "is_installed", lambda: False)
    async with controlled() as control:
        assert settings.begin(control.context.hub, {}, 0) is None
    assert "install agent-rendering-protocol[otel]" in caplog.text


async def test_wrong_variables_are_logged_and_the_hub_serves(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with controlled() as control:
        wrong = {"OTEL_METRICS_EXPORTER": "carrier pigeon"}
        assert settings.begin(control.context.hub, wrong, 0) is None
    assert "OTEL_METRICS_EXPORTER: no exporter 'carrier pigeon' here" in caplog.text


async def test_it_begins_where_it_is_wanted_and_there(caplog: pytest.LogCaptureFixture) -> None:
    off = {"OTEL_SDK_DISABLED": "true"}
    with caplog.at_level(logging.WARNING):
        async with controlled() as control:
            follower = settings.begin(control.context.hub, off, 0)
            assert isinstance(follower, Follower)
            await follower.aclose()
    assert caplog.text == ""


def test_nothing_of_opentelemetry_is_loaded_by_a_server_that_does_not_export() -> None:
    code = "import sys, arp.server.application; print('opentelemetry' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "False"


def test_it_is_seen_whether_the_extra_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    assert settings.is_installed()
    monkeypatch.setattr(settings, "find_spec", lambda name: None if "sdk" in name else object())
    assert not settings.is_installed()
