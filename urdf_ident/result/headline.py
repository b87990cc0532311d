"""The verdict in one sentence, with one remedy."""

from __future__ import annotations

from dataclasses import dataclass

from .record import Record
from .verdict import judge


@dataclass(frozen=True)
class Headline:
    """What a user must know first.

    Attributes:
        level: "good", "usable" or "poor".
        cause: Why, in one sentence.
        remedy: The one thing to do about it; empty where nothing has to be done.
    """

    level: str
    cause: str
    remedy: str


def headline(ident: Record) -> Headline:
    """The verdict, its cause and one remedy.

    Another motion is only advised where no cause in the logs is known: more of the same data would not help.

    Returns:
        The headline.
    """
    found = judge(ident)
    error = next((reason.text for reason in found.reasons if reason.id in ("held-out-error", "cross-validation")), "")
    if found.cause is None:
        return Headline(found.level, error or "nothing speaks against it", "")
    cause = found.cause.text if not error or error == found.cause.text else f"{found.cause.text}; {error}"
    return Headline(found.level, cause, found.cause.remedy or _log_remedy(ident) or _motion(ident))


def _log_remedy(ident: Record) -> str:
    """The remedy of the first warning about a log."""
    for log in ident.inputs:
        for finding in log["findings"]:
            if finding["severity"] in ("refused", "warning") and finding.get("remedy"):
                return str(finding["remedy"])
    return ""


def _motion(ident: Record) -> str:
    """The motion that would tell most of what is unknown."""
    motions = [verdict.motion for verdict in ident.verdicts if verdict.motion]
    return max(dict.fromkeys(motions), key=motions.count) if motions else ""
