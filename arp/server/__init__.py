"""The HTTP face: transports, lists, the page, metrics, and who may come in.

Read in this order: `guard`, `application`, `sockets`, `streams`, `uploads`, `workflow_events`,
`workflows`, `chats`, `runs`, `page`, `metrics`, `serve`.
"""
