"""One piece of work, from frozen to settled."""
