"""Read models: the current state of a session, folded from its facts one at a time.

Read in this order: `reading`, `records`, `entities` (the table of entities); `turns`, `tasks`,
`costs`; then `state` (the whole model), `read_model` (the fold), `document` (the published form).
"""
