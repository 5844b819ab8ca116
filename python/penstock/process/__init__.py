"""Code that both sidecars need as processes."""
