"""The mutants of all cases of the store suite."""

from __future__ import annotations

from tests.conformance import mutants_of_lists, mutants_of_lives, mutants_of_writing
from tests.conformance.mutant_stores import MUTANTS as MUTANTS

MODULES = (mutants_of_writing, mutants_of_lists, mutants_of_lives)
"""The modules that register mutants when they are imported."""
