"""The contract of stores as cases that run against any store.

Read `store_under_test`, `store_case`, the cases by subject (`cases`), `store_cases` (all of them),
`store_suite` and `store_report`.
"""
