"""The store in a PostgreSQL database, which several processes may have open at the same time.

Read in this order: `location`, `sql/001_ledger.sql`, `schema`, `errors`, `connections`,
`append_batch`, `writer`, `reader`, `store`. `README.md` has the theory of operation.
"""
