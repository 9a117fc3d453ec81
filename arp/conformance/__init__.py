"""Conformance tests for implementations by other authors.

`runtime` checks agent runtimes against the contract of `arp.runtime.contract.services`; `ledger`
finds the conformance level of a ledger.
"""
