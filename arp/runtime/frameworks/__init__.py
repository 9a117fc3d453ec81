"""Agents of frameworks, in this process: LangGraph, OpenAI Agents, Pydantic AI, AG-UI."""
