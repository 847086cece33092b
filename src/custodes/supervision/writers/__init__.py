"""One writer a scope: this host's line, and the line of all processes."""
