"""A Django project with its sessions, and an agent inside that identifies their users.

Start it: `python examples/django_login/app.py`. It makes a database with the users `ann` and `bob`;
their names are their passwords. A real project has `settings.py`, `urls.py` and `asgi.py`; here
they are one file. What matters is at its end: `agent`, and the last line of `asgi.py`.
"""

from __future__ import annotations

import os
from typing import Any

import django
from django.conf import settings

# -- settings.py ---------------------------------------------------------------------------------

LOGIN = """<!doctype html><title>Sign in</title><form method="post">{% csrf_token %}{{ form }}
<button>Sign in</button></form>"""

LOGOUT = """<!doctype html><title>Sign out</title><form method="post" action="{% url 'logout' %}">
{% csrf_token %}<button>Sign out</button></form>"""

TEMPLATES = {"registration/login.html": LOGIN, "leave.html": LOGOUT}

settings.configure(
    SECRET_KEY=os.environ.get("DJANGO_SECRET_KEY", "only for trying it on this machine"),
    ALLOWED_HOSTS=["127.0.0.1", "localhost"],
    ROOT_URLCONF=__name__,
    INSTALLED_APPS=[
        "django.contrib.auth",
        "django.contrib.contenttypes",
        "django.contrib.sessions",
    ],
    MIDDLEWARE=[
        "django.contrib.sessions.middleware.SessionMiddleware",
        "django.middleware.csrf.CsrfViewMiddleware",
        "django.contrib.auth.middleware.AuthenticationMiddleware",
    ],
    DATABASES={
        "default": {
            "ENGINE": "django.db.backends.sqlite3",
            "NAME": os.environ.get("DJANGO_DATABASE", "django_login.sqlite3"),
        }
    },
    DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
    USE_TZ=True,
    LOGIN_REDIRECT_URL="/agent/",
    LOGOUT_REDIRECT_URL="/agent/",
    TEMPLATES=[
        {
            "BACKEND": "django.template.backends.django.DjangoTemplates",
            "OPTIONS": {"loaders": [("django.template.loaders.locmem.Loader", TEMPLATES)]},
        }
    ],
)
django.setup()

# -- urls.py, and a view that returns the user ---------------------------------------------------

from django.contrib.auth import get_user_model, views  # noqa: E402
from django.http import HttpRequest, HttpResponse  # noqa: E402
from django.urls import path  # noqa: E402
from django.views.generic import TemplateView  # noqa: E402


def whoami(request: HttpRequest) -> HttpResponse:
    """Return the name of the signed-in Django user."""
    return HttpResponse(request.user.get_username() or "nobody")


urlpatterns = [
    path("login/", views.LoginView.as_view(), name="login"),
    path("logout/", views.LogoutView.as_view(), name="logout"),
    path("leave/", TemplateView.as_view(template_name="leave.html")),
    path("whoami/", whoami),
]

# -- agents.py -----------------------------------------------------------------------------------

from arp import Access, App, Turn  # noqa: E402
from arp.api import django_user  # noqa: E402

agent = App(
    title="Notes",
    suggestions=["Buy milk"],
    access=Access(
        authenticate=django_user,
        login_url="/login/?next={next}",
        logout_url="/leave/",
        sign_in_text="Please sign in to our site.",
    ),
)


@agent.agent
async def notes(turn: Turn) -> None:
    """Store your notes, for you alone."""
    user = await get_user_model().objects.aget(username=turn.user.name)
    kept = turn.state.setdefault("notes", [])
    kept.append(turn.text)
    await turn.say(f"{user.first_name}, these are your notes: " + ", ".join(kept) + ".")


# -- asgi.py -------------------------------------------------------------------------------------

from django.core.asgi import get_asgi_application  # noqa: E402

application = agent.mounted("/agent", inside=get_asgi_application())


# -- manage.py migrate, createsuperuser, runserver ------------------------------------------------


def prepare() -> None:
    """Create the database and its users if they do not exist."""
    from django.core.management import call_command

    call_command("migrate", verbosity=0)
    users: Any = get_user_model().objects
    for name in ("ann", "bob"):
        if not users.filter(username=name).exists():
            users.create_user(name, password=name, first_name=name.capitalize())


if __name__ == "__main__":
    import uvicorn

    prepare()
    uvicorn.run(application, port=8080)
