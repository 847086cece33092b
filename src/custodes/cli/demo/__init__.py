"""The demo: a real project, real programs, a provider of its own on this machine, and a plan over them."""
