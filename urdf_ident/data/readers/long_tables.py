"""Tables with a row for every joint or signal, as data bases export them."""

from __future__ import annotations

import re

from ...errors import LogError
from .tables import Table

#: Columns, their letters alone, that say which joint or signal a row is of, and columns of its numbers.
_KEYS = re.compile("(joint|motor)(name|id|index)?|axis|name|field|signal|variable|channel|metric|topic|series")
_VALUES = re.compile("value|val|data|q|pos|position|angle|v|vel|velocity|tau|effort|torque|current")


def refuse_long(table: Table) -> None:
    """Refuses a table with a row for every joint or signal, where a log has one for every sample.

    Args:
        table: One in which no column holds the positions of a joint.

    Raises:
        LogError: It is such a table; with what turns it round.
    """
    plain = {name: re.sub(r"[^a-z]", "", name.rpartition(".")[2].lower()) for name in (*(table.names or ()), *table.texts)}
    keys = [name for name, word in plain.items() if _KEYS.fullmatch(word)]
    values = [name for name, word in plain.items() if _VALUES.fullmatch(word)]
    if keys and values:
        chosen, listed = (repr(some[0] if len(some) == 1 else some) for some in (keys, values))
        raise LogError(
            "the log has a row for every joint or signal, not one for every sample",
            where=table.path,
            got=f"columns {', '.join([*keys, *values])}",
            expected="a column for every joint and quantity (q_<joint>, tau_<joint>)",
            remedy=f"write it so first: pandas' `pivot(index=<time>, columns={chosen}, values={listed})` does that",
        )
