"""Tool Agent: find, build, run, monitor and pay for tools.

Read `models` (the objects of the interface) and `states` (what may happen to a tool), then
`registry` and `containers` (what is on disk), `runtime` (the interface of everything that can run a
tool), one runtime (`local`, `docker`, `api` or `browser`), and `scheduler`, which calls tools.
`service` puts them together; `settings`, `resources` and `budget` limit them.

Then the tasks: `bus`, `task_specs`, `task_book`, `router`, `toolbox`, `coding_agent`, `backend`;
and the faces: `routes`, `mcp_face`, `catalog`.
"""
