"""Surfaces: atomic commits, simpler forms of components, answers to questions.

Read in this order: `change`, `surface`; `degrade` with `conversions`, `as_text`, `aligned` and
`question_text`; `answers` with `form_fields`, `typed_answer` and `draft_answer`; `answer_type`
and `schema_form` with `schema_slot` (forms made from types and from JSON Schema).
"""
