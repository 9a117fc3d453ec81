"""The HTTP server: WebSocket, event streams, uploads, lists, pages and metrics.

Read in this order: `settings`, `state`, `application`, `answers`, `uploads`, `page`; `routes`,
`login`, `ports`; then `mounting`, `lifespan`, `workers`, `serve`, `ending`. `static` and
`protocol` hold files that are served.
"""
