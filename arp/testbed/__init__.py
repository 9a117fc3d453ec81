"""Serve an app to tests in this process, and test it with virtual renderers.

`arp.testing` has the names for your own tests. Read in this order: `served_app`,
`virtual_renderer`, `rendered_turn`, `rendered_question`, `watched_client`, `snapshot`,
`virtual_clock`, `asgi_link`, `asgi_lifespan`, `pytest_plugin`.
"""
