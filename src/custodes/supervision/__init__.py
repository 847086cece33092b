"""Supervised work: conversations, fan-outs and children over one breaker, one budget and one writer a scope.

`Supervision` is the door for hosts; `work` has what goes in and comes out, `events` what is told meanwhile.
"""
