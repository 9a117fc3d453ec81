"""What renderers of the object dialect receive."""
