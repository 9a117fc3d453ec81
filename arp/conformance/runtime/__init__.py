"""The contract of agent runtimes as cases that run against any runtime.

Read `runtime_under_test`, `case`, the cases by subject (`session_cases`, `turn_cases`,
`permission_cases`, `event_cases`, `service_cases`, `failure_cases`), `runtime_cases` (all of
them), `runtime_suite` and `runtime_matrix`.
"""
