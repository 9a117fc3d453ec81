r"""Users sign in at an OpenID Connect provider, such as Google, Entra, Okta or Keycloak.

Register a web application there, with the redirect address
`http://127.0.0.1:8080/_login/callback`, and start it with what you get:

    ARP_OIDC_ISSUER=https://login.example.org ARP_OIDC_CLIENT_ID=… ARP_OIDC_CLIENT_SECRET=… \
        arp serve examples/oidc_login/app.py
"""

from __future__ import annotations

from arp import App, Turn

app = App(title="Notes", suggestions=["Buy milk"])


@app.agent
async def notes(turn: Turn) -> None:
    """Store your notes, for you alone."""
    kept = turn.state.setdefault("notes", [])
    kept.append(turn.text)
    await turn.say(f"{turn.user.display_name}, these are your notes: " + ", ".join(kept) + ".")
    if "admin" in turn.user.roles:
        await turn.say(" You may read the notes of all users in the inspector.")
