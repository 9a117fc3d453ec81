"""All cases of the contract of stores, by subject."""

from __future__ import annotations

from arp.conformance.store.cases import (
    append_cases,
    concurrency_cases,
    crash_cases,
    damage_cases,
    delete_cases,
    fence_cases,
    life_cases,
    list_cases,
    model_cases,
    paging_cases,
    search_cases,
    sequence_cases,
)
from arp.conformance.store.store_case import StoreCase

STORE_CASES: tuple[StoreCase, ...] = (
    *append_cases.CASES.all,
    *sequence_cases.CASES.all,
    *paging_cases.CASES.all,
    *list_cases.CASES.all,
    *search_cases.CASES.all,
    *model_cases.CASES.all,
    *delete_cases.CASES.all,
    *life_cases.CASES.all,
    *concurrency_cases.CASES.all,
    *fence_cases.CASES.all,
    *damage_cases.CASES.all,
    *crash_cases.CASES.all,
)
