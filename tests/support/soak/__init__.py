"""Many surfaces at once on one project, killed at random for as long as is asked for: ``scripts/soak``.

Real processes throughout. `project` makes the project, `program` is its runtime, `plans` what is asked of it;
`hosts`, `agent`, `browser`, `operator` and `overseer` each drive one surface, `killer` signals whatever runs,
and `watch` looks for what must never be (`findings`). Every choice comes from the seed; which moment the
system gives it is not in the seed's power, so a fault is told with all that is known of it.
"""
