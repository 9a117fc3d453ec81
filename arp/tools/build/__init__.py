"""Tools made to order: from a request in words to a working tool.

Read `messages` and `planning`; `workplace` and `turn_place`; `toolbox` with `toolbox_approval` and
`toolbox_server`; `coding_job` and `coding_agent` with `cloning` and `coding_log`; `router` with
`callbacks`; `backend` combines all of them.
"""
