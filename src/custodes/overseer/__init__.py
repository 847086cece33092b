"""The watch over providers: probes them, moves profiles off a sick one, and moves them back.

`config` is what a person writes, `watch` and `decide` are the rules, `overseer` is their one executor.
"""
