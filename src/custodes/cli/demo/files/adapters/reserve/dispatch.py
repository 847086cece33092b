"""Speaks as the built-in adapter does; only its address and its models are its own."""

from custodes.adapters.openai.dispatch import runtime

__all__ = ["runtime"]
