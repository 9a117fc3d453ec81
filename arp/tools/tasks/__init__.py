"""Tasks of the Tool Agent: specs, records, costs, prompts, and removal.

Read `task_specs`, `task_book` (status and outcome), `task_money`, `task_words`, `task_leftovers`.
"""
