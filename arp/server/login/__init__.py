"""Signing in with OpenID Connect, and the cookies of this server."""
