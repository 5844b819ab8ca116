"""What Penstock needs of a machine, and what it finds: looking apart from judging."""
