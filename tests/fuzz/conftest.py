"""Whatever is read from outside is fed with what nobody meant: it may refuse, never break.

The ordinary suite tries a few hundred examples in all, always the same ones. To look for more, for as long
as you like, with others each time:

    CUSTODES_FUZZ=100 scripts/test tests/fuzz              # a hundred times as many, over everything
    CUSTODES_FUZZ=5000 scripts/test tests/fuzz/test_yaml.py

``scripts/test --full tests/fuzz`` also puts every odd value into every field of every recorded event, which
takes minutes. Each fault found is written down with its
smallest input beside the property that found it (``FAULTS`` there), which is tried first from then on.
"""
