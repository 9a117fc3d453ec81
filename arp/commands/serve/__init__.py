"""`arp serve` and `arp app-server`.

Read `serve_settings` (file, environment and flags), `serving_app`, `serving`, `serving_ports`
(all ports besides HTTP), `reload`.
"""
