"""Login and logout in a browser, and information about the user.

`GET /_login` redirects to the provider, `GET /_login/callback` receives its answer, and
`POST /_logout` ends the login. `GET /_api/user` returns how to sign in, and the user if the request
has one.
"""

from __future__ import annotations

import logging
from html import escape
from typing import Final

from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from arp.server.answers import json_response
from arp.server.login.logins import CALLBACK, CREDENTIAL, LOGIN, LOGOUT, LoginBook
from arp.server.login.oidc_provider import ProviderFailed
from arp.server.state import requester

logger = logging.getLogger(__name__)

FAILED: Final = """<!doctype html><html lang="en"><meta charset="utf-8">
<meta name="viewport" content="width=device-width"><title>Not signed in</title>
<h1>You are not signed in</h1><p>Signing in did not work: {reason}.</p>
<p><a href="{again}">Try again</a></p></html>"""

PAGE_HEADERS: Final = {
    "content-security-policy": "default-src 'none'; base-uri 'none'; frame-ancestors 'none'",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "cache-control": "no-store",
}


async def _login(request: Request) -> Response:
    """Redirect the browser to the provider."""
    logins = _logins(request)
    if logins is None:
        return json_response({"error": "this server has no login"}, 404)
    try:
        after = request.query_params.get("next", "")
        url, cookie = await logins.begin(request.scope, after)
    except ProviderFailed as failed:
        return _failed(request, failed)
    return _redirect(url, [cookie])


async def _callback(request: Request) -> Response:
    """Complete the login of a browser that returns from the provider."""
    logins = _logins(request)
    if logins is None:
        return json_response({"error": "this server has no login"}, 404)
    try:
        path, cookies = await logins.finish(request.scope)
    except ProviderFailed as failed:
        return _failed(request, failed)
    return _redirect(path, cookies)


async def _logout(request: Request) -> Response:
    """End the login; return the address at which the browser also signs out of the provider."""
    logins = _logins(request)
    if logins is None:
        return json_response({"error": "this server has no login"}, 404)
    ended = logins.end(request.scope)
    back = logins.base(request.scope) + "/"
    location = None
    if ended is not None:
        asker = requester(request)
        # Otherwise the check would end this request with its login, before it is answered.
        asker.lease.release()
        asker.state.leases.check()
        location = await logins.provider.sign_out_url(ended.identity.id_token, back)
    return json_response(
        {"location": location or back},
        200,
        {"set-cookie": logins.expired_cookie(request.scope)},
    )


async def _user(request: Request) -> Response:
    """Return the user, and how to sign in and out."""
    asker = requester(request)
    access, known = asker.state.served.access, asker.known
    root: str = request.scope.get("root_path", "")
    has_own = asker.state.logins is not None
    user = None
    if known is not None:
        shown = known.user
        user = {
            "name": shown.name,
            "display_name": shown.display_name,
            "roles": list(shown.roles),
            "is_admin": known.is_admin,
        }
    is_login = known is not None and known.credential.startswith(CREDENTIAL)
    logout_url = f"{root}{LOGOUT}" if is_login else access.logout_url
    about = {
        "user": user,
        "login_url": f"{root}{LOGIN}?next={{next}}" if has_own else access.login_url,
        "logout_url": logout_url,
        "logout_method": "POST" if is_login else "GET",
        "sign_in_text": access.sign_in_text,
    }
    return json_response(about)


def _logins(request: Request) -> LoginBook | None:
    return requester(request).state.logins


def _redirect(location: str, cookies: list[str]) -> Response:
    answer = RedirectResponse(location, 303, PAGE_HEADERS)
    for cookie in cookies:
        answer.headers.append("set-cookie", cookie)
    return answer


def _failed(request: Request, failed: ProviderFailed) -> Response:
    logger.warning("a login failed: %s", failed)
    again = f"{request.scope.get('root_path', '')}{LOGIN}"
    page = FAILED.format(reason=escape(str(failed)), again=escape(again))
    return HTMLResponse(page, 400 if failed.is_final else 502, PAGE_HEADERS)


LOGIN_ROUTES = [
    Route(LOGIN, _login),
    Route(CALLBACK, _callback),
    Route(LOGOUT, _logout, methods=["POST"]),
    Route("/_api/user", _user),
]
