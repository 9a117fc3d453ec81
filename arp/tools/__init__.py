"""Tool Agent: find, build, run, monitor and pay for tools.

Read `errors` and `settings`; `registry` (the known tools), `projects` (their files), `run` (their
execution), `budget` and `belongings`, and `service`, which combines these. Then read `tasks` and
`build` (tools made to order), `faces` (HTTP, MCP, turns) and `app` (all of it in an `App`).
"""
