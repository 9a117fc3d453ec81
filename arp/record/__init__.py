"""Facts that ARP cannot see by itself and agents record: tasks, processes, models, costs.

Read in this order: `scope`, `recorder`, `work`, `outputs`, `processes`, `wording`.
"""
