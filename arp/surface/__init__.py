"""Surfaces with atomic commits, degrading of components, and validation of answers.

Read in this order: `change`, `surface`, `degrade`, `answers`.
"""
