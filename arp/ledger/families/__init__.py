"""The rows of all fact types, one file for related families. `fact_types` combines them.

A row defines everything about a type: the fields of its payload, its required ids and its effects
on the read models. A field that only one family has is defined in the file of that family.
"""
