"""What a driver tells of its queries (PROTOCOL.md, section 10), and how it looks in a terminal."""
