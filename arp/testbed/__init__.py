"""Serve an app to tests in this process, with virtual renderers.

`arp.testing` exports the names for users. Read in this order: `served_app`, `virtual_renderer`,
`rendered_turn`, `rendered_question`, `watched_client`, `snapshot`, `virtual_clock`, `asgi_link`,
`asgi_lifespan`, `pytest_plugin`.
"""
