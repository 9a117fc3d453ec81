"""Facts that agents and servers record themselves: tasks, processes, models, costs.

Read in this order: `scope`, `recorder`, `work`, `outputs`, `processes`, `wording`, `end_cause`.
"""
