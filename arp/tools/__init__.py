"""Tool Agent: find, build, run, monitor and pay for tools.

Read `errors` and `settings`; `registry` (which tools exist), `projects` (their files), `run` (what
executes them), `budget` and `belongings`, and `service`, which puts these together. Then `tasks`
and `build` (tools made to order), `faces` (HTTP, MCP, turns) and `app` (all of it in an `App`).
"""
