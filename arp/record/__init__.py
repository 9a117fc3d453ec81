"""Facts that ARP cannot observe and that agents record: tasks, processes, models, costs.

Read in this order: `scope`, `recorder`, `work`, `outputs`, `processes`, `wording`.
"""
