"""Read the status of a driver's queries (PROTOCOL.md, section 10) and show it in a terminal."""
