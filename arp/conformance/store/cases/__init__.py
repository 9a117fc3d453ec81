"""The cases of the contract of stores, by subject; `store_cases` has all of them."""
