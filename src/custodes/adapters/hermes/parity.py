"""How Hermes says each case of the contract: the error as its answer, and a report that it failed."""

from __future__ import annotations

from custodes.adapters.parity import SILENCE, Stage, prints

USED = {"input_tokens": 11, "output_tokens": 5, "estimated_cost_usd": 0.01, "cost_status": "estimated"}


def reports(text: str, **report: object) -> str:
    """It writes its report to the file it is given, and its answer, or the error, to standard output."""
    stated = prints({"api_calls": 1, **report}).removesuffix("exit 0\n").replace("cat <<", 'cat > "$2" <<')
    return f'while [ "$1" != --usage-file ]; do shift; done\n{stated}{prints(text)}'


def fails(words: str) -> str:
    return reports(words, completed=False, failed=True)


FAILURES = {
    "limit": fails("HTTP 429: Slow down."),
    "limit with a wait": fails("API call failed after 1 retries: HTTP 429: Please try again in 52s."),
    "usage limit with a reset": fails("HTTP 429: Usage limit reached. It resets in 2 hours."),
    "billing": fails("HTTP 402: Insufficient Balance"),
    "overloaded": fails("HTTP 529: Overloaded"),
    "server error": fails("HTTP 500: oops"),
    "auth": fails("HTTP 401: Incorrect API key provided"),
    "invalid": fails("HTTP 404: The model does not exist"),
    "timeout": SILENCE,
    "unanticipated": "exit 77",
    "no proof of success": prints("half an ans"),
    "our own refusal": fails("all eligible adapters are at capacity"),
    "innocent words": fails("402913 tokens used at line 4031"),
}


def arrange(case: str, stage: Stage) -> Stage:
    script = FAILURES.get(case) or reports(
        stage.answer, completed=True, failed=False, session_id="s1", **USED
    )
    return stage.program("hermes", script, noise_to="&2")
