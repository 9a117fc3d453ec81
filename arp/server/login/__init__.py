"""Login with OpenID Connect, cookies, and the server's own secrets.

Read `oidc_library` (authlib), `oidc_provider`, `logins`, `login_file`; `file_cookie` gives a page
access to the user's files; `own_secrets` keeps the secrets of the process out of the ledger.
"""
