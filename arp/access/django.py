"""The users of a Django project: `Access(authenticate=django_user)`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from arp.access.incoming import IncomingConnection
from arp.access.principal import User

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractBaseUser


async def django_user(connection: IncomingConnection) -> User | None:
    """Return who is signed in to the Django project in which the app is mounted.

    Its roles are the names of the user's groups, and `staff` and `superuser`. The session of Django
    decides, with all that Django checks of it: a password that was changed or a user that was
    deactivated ends it, and with it open connections, within `Access.recheck_s`.

    Args:
        connection: The request. Its cookies need no middleware of Django.
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

    # Outside of a request of Django nobody else does this.
    close_old_connections()
    try:
        request = HttpRequest()
        request.session = import_module(settings.SESSION_ENGINE).SessionStore(key)
        user = get_user(request)
        if not user.is_authenticated or not user.is_active:
            return None
        expires_at = request.session.get_expiry_date().timestamp()
        return User(user.get_username(), _shown(user), _roles(user), {}, expires_at)
    finally:
        close_old_connections()


def _shown(user: AbstractBaseUser) -> str:
    full_name = getattr(user, "get_full_name", lambda: "")
    return str(full_name())


def _roles(user: AbstractBaseUser) -> list[str]:
    """Return what a user may do, also of a project's own kind of user, which may have no groups."""
    groups = getattr(user, "groups", None)
    roles = [] if groups is None else list(groups.values_list("name", flat=True))
    marks = {"staff": "is_staff", "superuser": "is_superuser"}
    return roles + [role for role, name in marks.items() if getattr(user, name, False)]
