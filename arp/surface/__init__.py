"""What is shown: surfaces with atomic commits, simpler forms of components, answers.

Read in this order: `change`, `surface`, `degrade`, `answers`.
"""
