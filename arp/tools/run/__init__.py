"""Execution of tools: runtimes for each kind of tool, and the scheduler.

Read `runtime` (the interface), then `local` with `ports`, `docker_runtime` with `docker`,
`containers` and `container_rules`, `api` with `http_call` and `addresses`, or `browser` with
`checked_proxy`; last `live_tool`, `resources` and `scheduler`.
"""
