"""The HTTP face: WebSocket, event streams, uploads, lists, the pages and metrics.

Read in this order: `settings`, `state`, `application`, `sockets`, `streams`, `uploads`, `chats`,
`workflows`, `runs`, `page`, `monitoring`, `serve`.
"""
