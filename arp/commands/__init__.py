"""The commands of `arp`; only the command line imports them.

Read `output` (printing, used by all commands), then one folder: `ledger` (commands that read
sessions and facts), `replay`, `serve`. The other commands are files: `ari` with `ari_serving`,
`conformance`, `token`, `tools` with `tools_serving`. `target` and `runtime_option` find the app and
the runtime that a command line names.
"""
