"""What a tool or another process asks of a conversation's root, and the answers."""
