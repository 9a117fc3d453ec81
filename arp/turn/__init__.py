"""What an agent's code works with: `Turn`, its tools, questions, surfaces and approvals.

Read `host` (the state behind a turn), `turn`, `tool`, `open_question`, `open_surface`.
"""
