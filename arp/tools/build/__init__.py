"""Tools made to order: from a request in words to a working tool.

Read `bus`, `planning` and `router` with `callbacks`; `workplace` and `turn_place`; `toolbox` with
`toolbox_approval` and `toolbox_server`; `coding_job` and `coding_agent` with `cloning` and
`coding_log`; `backend` combines all of them.
"""
