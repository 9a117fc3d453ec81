"""The author's interface: `Turn`, and its tools, questions, surfaces and memory.

Read first what authors call: `turn`, `tool`, `approval`, `open_question`, `question_outcome`,
`earlier_questions`, `open_surface`. Then the internal side: `host`, `pending_changes`, `surfaces`,
`services`, `author_call`, `author_values`. Then `past_messages`; `sync_turn` and `thread` (agents
without async); `foreign_names`, `foreign_components`; `user_settings`, `settings_command`,
`feedback`.
"""
