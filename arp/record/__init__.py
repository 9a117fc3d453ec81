"""What a runtime tells the ledger that ARP does not know by itself: tasks, processes, costs.

Read in this order: `scope`, `recorder`, then what is of interest: `tasks`, `processes`,
`permissions`, `models`, `routing`, `limits`, `history`, `delegation`, `lasting`, `benchmarks`.
"""
