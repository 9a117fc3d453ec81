"""What is shown: surfaces with atomic commits, and what each renderer gets of them.

Read in this order: `surface`, `degrade`, `fitting`, `answers`, `profile`, `translate`,
`snapshot`.
"""
