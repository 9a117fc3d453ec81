"""An app that is served to tests in this process, and the renderers that tests talk to it with.

`arp.testing` has the names for tests of your own. Read in this order: `served_app`,
`virtual_renderer`, `rendered_turn`, `rendered_question`, `watched_client`, `snapshot`,
`virtual_clock`, `asgi_link`, `asgi_lifespan`, `pytest_plugin`.
"""
