"""All cases of the contract of agent runtimes, by subject."""

from __future__ import annotations

from arp.conformance.runtime import (
    event_cases,
    failure_cases,
    permission_cases,
    service_cases,
    session_cases,
    turn_cases,
)
from arp.conformance.runtime.case import ContractCase

CASES: tuple[ContractCase, ...] = (
    *session_cases.CASES.all,
    *turn_cases.CASES.all,
    *permission_cases.CASES.all,
    *event_cases.CASES.all,
    *service_cases.CASES.all,
    *failure_cases.CASES.all,
)
