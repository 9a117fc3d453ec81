"""The commands of `arp`, imported by the command line only.

Read `output` (how every command prints), then one folder: `ledger` (commands that read sessions
and facts), `replay`, `serve`. The other commands are files here: `ari` with `ari_serving`,
`conformance`, `token`, `tools` with `tools_serving`; `target` and `runtime_option` find the app
and the runtime that a command line names.
"""
