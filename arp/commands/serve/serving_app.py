"""The application that `arp serve` serves: an app, with settings that override those of the app."""

from __future__ import annotations

import logging
import os
import traceback
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from arp.access.oidc import Oidc
from arp.access.settings import Access
from arp.app import App
from arp.commands.output import fail
from arp.commands.runtime_option import runtime_of
from arp.commands.serve.serve_settings import ServeSettings
from arp.commands.target import TargetError, find
from arp.live.settings import HubSettings
from arp.server.application import Application
from arp.server.login.own_secrets import redact_logs
from arp.store.location import default_ledger
from arp.telemetry import settings as telemetry

EVERYWHERE = ("0.0.0.0", "::")
"""Hosts that mean all addresses of this machine."""


def load_application(target: str | None, serving: ServeSettings) -> Application:
    """Return the application of a target, or of the runtime or model that the settings name."""
    if target is not None:
        app = _load(target)
    else:
        app = _runtime_app(serving) if serving.runtime is not None else _model_app(serving)
    return application_of(app, ledger_name_of(target, serving), serving)


def ledger_name_of(target: str | None, serving: ServeSettings) -> str:
    """Return the name that the file name of the default ledger is made from.

    It is the target, or else the runtime, or else the provider of the model.
    """
    return target or str(serving.runtime or serving.model).partition(":")[0]


def application_of(app: App, name: str, serving: ServeSettings) -> Application:
    """Return the application of an app, with the settings of the command line.

    Args:
        app: The app.
        name: Name of its default ledger.
        serving: Settings, which override those of the app.
    """
    if serving.debug and app.access.hosts:
        fail(
            "--debug shows tracebacks to every client, so it cannot be combined with "
            "App(access=Access(hosts=…)). Leave one of the two out."
        )
    ledger = serving.ledger or app.ledger
    if ledger == "memory:" and serving.ledger is None and not serving.stdio:
        ledger = f"sqlite:{default_ledger(name, app.handlers)}"
    access, settings = _access(app, serving), _hub_settings(app, serving)
    try:
        served = app.served(
            ledger=ledger,
            access=access,
            settings=settings,
            debug=serving.debug,
            start_token="no" if serving.stdio else "printed",
        )
        application = Application(served)
    except ValueError as error:
        fail(str(error))
    redact_logs(application.state.redaction())
    return application


def _access(app: App, serving: ServeSettings) -> Access:
    """Return the access control of the app, with the additions and changes of the settings."""
    host = serving.host
    names = [] if host in EVERYWHERE else [f"[{host}]" if ":" in host else host]
    try:
        access = replace(
            app.access,
            token=serving.token or app.access.token,
            hosts=(*app.access.hosts, *names, *serving.hosts),
            origins=(*app.access.origins, *serving.origins),
            trusted_proxies=(*app.access.trusted_proxies, *serving.trusted_proxies),
            oidc=_oidc(serving, app.access.oidc),
            login_url=serving.login_url or app.access.login_url,
            logout_url=serving.logout_url or app.access.logout_url,
            sign_in_text=serving.sign_in_text or app.access.sign_in_text,
            start_token=app.access.start_token and not serving.no_token,
        )
    except ValueError as error:
        fail(f"{_flag_behind(error, host)}: {error}")
    # Over pipes there are no host names to check.
    return replace(access, hosts=()) if serving.stdio else access


def _hub_settings(app: App, serving: ServeSettings) -> HubSettings:
    """Return the settings of the app, with the changes of the command line."""
    redaction = serving.redaction or app.settings.redaction
    if not serving.redact:
        redaction = replace(redaction, enabled=False)
    return replace(
        app.settings,
        redaction=redaction,
        telemetry=app.settings.telemetry or _telemetry(serving),
        runtime_id=serving.runtime_id or app.settings.runtime_id,
        transfer_key=serving.transfer_key or app.settings.transfer_key,
    )


def _flag_behind(error: ValueError, host: str) -> str:
    """Return the flag with the value that `Access` refuses."""
    if "oidc" in str(error).lower():
        return "--oidc-issuer"
    return "--trust-proxy" if "trusted_proxies" in str(error) else f"--host {host}"


def _oidc(serving: ServeSettings, of_app: Oidc | None) -> Oidc | None:
    """Return the OpenID login of the app, with the values of the settings where they are set.

    Return `None` if neither the app nor the settings configure a login.

    Raises:
        ValueError: A value is not valid.
    """
    given = {
        "issuer": serving.oidc_issuer,
        "client_id": serving.oidc_client_id,
        "client_secret": serving.oidc_client_secret,
        "user_claim": serving.oidc_user_claim,
        "admin": serving.oidc_admin,
        "public_url": serving.public_url,
    }
    options: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    if of_app is not None:
        return replace(of_app, **options)
    if not options.keys() - {"public_url"}:
        return None
    if serving.oidc_issuer is None or serving.oidc_client_id is None:
        fail("a login at a provider needs both --oidc-issuer and --oidc-client-id")
    return Oidc(**options)


def _telemetry(serving: ServeSettings) -> bool:
    """Return whether telemetry is on; end with an error if `--otel` lacks OpenTelemetry."""
    if serving.otel and not telemetry.is_installed():
        fail(f'--otel needs OpenTelemetry; install it: pip install "{telemetry.EXTRA}"')
    return serving.otel or (telemetry.is_configured(os.environ) and telemetry.is_installed())


def _load(target: str) -> App:
    try:
        app = find(target, App)
    except TargetError as error:
        fail(str(error))
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        # The author's file may raise anything, even SystemExit.
        logging.getLogger("arp.cli").debug("loading %s", target, exc_info=True)
        fail(f"{target} cannot be loaded: {_last_line(error)}")
    if not app.handlers:
        fail(f"the App in {target} has no agent; write @app.agent above an async function")
    return app


def _runtime_app(serving: ServeSettings) -> App:
    """Return an app with the runtime of the settings as its only agent."""
    from arp.runtime.contract.types import CreateSessionRequest
    from arp.runtime.turns.session_commands import RuntimeOffers

    assert serving.runtime is not None
    runtime = runtime_of(serving.runtime, serving.cwd or ".", serving.passed)
    name = serving.runtime.partition(":")[0]
    app = App(title=name, description=f"{name} in {Path(serving.cwd or '.').resolve().name}")
    session = CreateSessionRequest(mode=serving.mode or "", model=serving.runtime_model or "")
    app.runtime(runtime, session=session, offers=RuntimeOffers(providers=tuple(serving.providers)))
    return app


def _model_app(serving: ServeSettings) -> App:
    """Return an app with the model of the settings as its only agent."""
    from arp.runtime.contract.errors import AriError

    model = str(serving.model)
    app = App(title=model.rpartition(":")[2], description=f"The model {model}")
    try:
        app.model_agent(model, base_url=serving.base_url, instructions=serving.instructions)
    except AriError as error:
        fail(f"--model {error.message}")
    return app


def _last_line(error: BaseException) -> str:
    """Return an error and its place, in one line."""
    text = str(error).strip().partition("\n")[0]
    raised = f"{type(error).__name__}: {text}" if text else type(error).__name__
    if isinstance(error, SyntaxError):
        return f"{type(error).__name__}: {error.msg} ({error.filename}:{error.lineno})"
    frames = [f for f in traceback.extract_tb(error.__traceback__) if "importlib" not in f.filename]
    return f"{raised} ({frames[-1].filename}:{frames[-1].lineno})" if frames else raised
