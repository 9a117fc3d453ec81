"""What renderers of the object dialect receive.

Read `flat` (components without a conversation), then `dialect` (one renderer's requests).
"""
