"""Adapters for agents of frameworks in this process.

One group of files for each framework: `langgraph` with `graph_stream`, `langchain_approvals` and
`request_reporter`; `openai_agents` with `agents_stream` and `agents_finish`; `pydantic_ai` with
`reporting_model`; `ag_ui` with `ag_ui_source` and `ag_ui_stream`. `spoken_messages` orders messages
that stream at the same time. `model_agent` makes an agent of a model and Python functions.
"""
