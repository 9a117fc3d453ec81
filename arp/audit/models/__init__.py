"""What a session is now, told from its facts alone: read models that fold one fact at a time.

Read in this order: `reading`, `records`, `entities` (the table); `turns`, `tasks`, `costs`; then
`state` (all of it), `read_model` (the fold), `document` (what is given out).
"""
