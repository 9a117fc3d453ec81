"""Conformance tests that run against implementations of other people.

`runtime` checks agent runtimes against the contract of `arp.runtime.contract.services`; `ledger`
finds the conformance level of a ledger.
"""
