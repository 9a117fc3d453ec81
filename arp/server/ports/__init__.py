"""Connections of renderers and programs, one file for each transport.

HTTP: `sockets` (WebSocket) with `socket_protocol`, `streams` (server-sent events). The files
`…_port` have listeners of their own; a file `…_uploads` receives the files of a transport. `pipes`
serves standard input and output.
"""
