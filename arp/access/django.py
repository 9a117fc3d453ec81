"""Authenticate the users of a Django project: `Access(authenticate=django_user)`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from arp.access.incoming import IncomingConnection
from arp.access.principal import User

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractBaseUser


async def django_user(connection: IncomingConnection) -> User | None:
    """Return the user who is signed in to the Django project that mounts the app.

    The roles are the names of the user's groups, and `staff` and `superuser`. Django's own checks
    of its session apply: a changed password or a deactivated user ends the session, and open
    connections are closed within `Access.recheck_s`.

    Args:
        connection: The request. Its cookies are read without Django's middleware.
    """
    from asgiref.sync import sync_to_async
    from django.conf import settings

    key = connection.cookies.get(settings.SESSION_COOKIE_NAME)
    return await sync_to_async(_user_of)(key) if key else None


def _user_of(key: str) -> User | None:
    from importlib import import_module

    from django.conf import settings
    from django.contrib.auth import get_user
    from django.db import close_old_connections
    from django.http import HttpRequest

    # Django does this only around its own requests; without it, a stale connection would be used.
    close_old_connections()
    try:
        request = HttpRequest()
        request.session = import_module(settings.SESSION_ENGINE).SessionStore(key)
        user = get_user(request)
        if not user.is_authenticated or not user.is_active:
            return None
        expires_at = request.session.get_expiry_date().timestamp()
        return User(user.get_username(), _display_name(user), _roles(user), {}, expires_at)
    finally:
        close_old_connections()


def _display_name(user: AbstractBaseUser) -> str:
    full_name = getattr(user, "get_full_name", lambda: "")
    return str(full_name())


def _roles(user: AbstractBaseUser) -> list[str]:
    """Return the roles of a user. A project's own user model may have no groups or flags."""
    groups = getattr(user, "groups", None)
    roles = [] if groups is None else list(groups.values_list("name", flat=True))
    marks = {"staff": "is_staff", "superuser": "is_superuser"}
    return roles + [role for role, name in marks.items() if getattr(user, name, False)]
