"""What an agent's code works with: `Turn`, its tools, questions, surfaces and approvals.

Read `host` (what a turn needs of its session), `turn`, `tool`, `open_question`, `open_surface`.
"""
