"""Read models: the current state of a session, computed from its facts one at a time.

Read in this order: `reading`, `records`, `entities` (the table); `turns`, `tasks`, `costs`; then
`state` (all of it), `read_model` (the fold), `document` (the public documents).
"""
