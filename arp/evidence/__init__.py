"""Packs on the disk: written aside and renamed, opened, checked.

Read in this order: `pack_writer`, `pack`, `export`, `checking`, `documents`.
"""
