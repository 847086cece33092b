"""The result metadata each supervised child returns, built in one place."""

from __future__ import annotations

from custodes.telemetry import conventions as names


def envelope(
    *,
    role: str,
    provider: str,
    adapter: str,
    model: str | None,
    pool: str | None = None,
    health_state: str | None = None,
    health_probe: bool | None = None,
    category: str | None = None,
    retry_after_s: int | None = None,
) -> dict[str, str | int | bool]:
    """Seed, "Dispatch identity and evidence". What is not known has no key, as in OpenTelemetry.

    :param provider: the descriptor's, which may be empty: the adapter's id stands in for it.
    :param model: the model actually used: the served one where the runtime says it, else the requested one.
    :param pool: what the work was metered against; None, with the two after it, past the breaker.
    :param health_state: the pool's state at dispatch.
    :param category: the normalized failure, if there was one.
    :param retry_after_s: the provider's stated wait in whole seconds, if it stated one.
    """
    metadata: dict[str, str | int | bool | None] = {
        names.PROVIDER_NAME: names.provider_name(provider, adapter),
        names.AGENT_ID: role,
        names.REQUEST_MODEL: model,
        names.META_CAPACITY_SCOPE: pool,
        names.META_HEALTH_STATE: health_state,
        names.META_HEALTH_PROBE: health_probe,
        names.META_ERROR_CATEGORY: category,
        names.META_RETRY_AFTER_S: retry_after_s,
    }
    return {name: value for name, value in metadata.items() if value is not None}
