"""What both sidecars need as processes."""
