"""The contract of stores as cases that run against any store.

Read `store_under_test`, `store_case`, the cases by subject (`append_cases`, `sequence_cases`,
`paging_cases`, `list_cases`, `search_cases`, `model_cases`, `delete_cases`, `life_cases`,
`concurrency_cases`, `fence_cases`, `damage_cases`, `crash_cases`), `store_cases` (all of them),
`store_suite` and `store_report`.
"""
