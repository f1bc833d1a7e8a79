"""How many wallets match a segment, each of its lines alone, and remain after each condition that must hold."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

from nbext.core.provenance import Provenance
from nbext.core.untrusted_text import visible
from nbext.core.wire import MAX_COMPARED
from nbext.notebook.forms.builder import filters
from nbext.notebook.forms.builder.tree import Group, Part, Tree

_CUT = 160
# Wallets that are named beside the counts.
_FEW = 3


def of(
    client: Any, tree: Tree, question: tuple[Any, str], words: Callable[[Part], str]
) -> dict[str, Any]:
    """Return what the page shows of a tree's counts: matched, steps, lines by their ids, some wallets, notes.

    A stranger's service is asked for the whole alone.
    """
    if not client.is_ours:
        known = Provenance.of(client.execute_segment(*question, limit=0))
        return {"matched": known.matched, "steps": [], "lines": {}, "notes": known.warnings}
    funnel = client.funnel(*question, sample=_FEW)
    steps, parts = funnel["steps"], list(_steps(tree))
    # Where the service joins the conditions in a way that is not foreseen here, its own words name them.
    if len(parts) != len(steps) or tree.root.join != "all":
        parts = []
    before, shown, lines = None, [], {}
    for part, step in itertools.zip_longest(parts, steps):
        alone, left = f"{step['alone']:,}", step["remaining"]
        if part is not None and part.negated and before is not None:
            alone = f"\N{MINUS SIGN}{before - left:,}"
        shown.append(
            {
                "label": visible(step["words"], _CUT) if part is None else words(part),
                "alone": alone,
                "remaining": f"{left:,}",
                "share": left / max(steps[0]["remaining"], 1),
            }
        )
        if part is not None:
            lines[str(part.id)] = alone
        before = left
    return {
        "matched": before,
        "steps": shown,
        "lines": lines | _others(client, tree, lines),
        "sample": [visible(wallet, 42) for wallet in funnel.get("sample") or ()],
        "notes": funnel["warnings"],
    }


def _steps(tree: Tree) -> Iterator[Part]:
    """Yield the parts that must all hold, in the order of the filters; the service takes groups of these apart."""
    by_id = {part.id: part for part in tree.root.walk()}
    inside: set[int] = set()
    # What is denied has two pointers, its own and that of its NOT.
    for part in map(by_id.__getitem__, dict.fromkeys(filters.written(tree)[1].values())):
        if isinstance(part, Group):
            if not part.negated and (part.join == "all" or len(part.members) < 2):
                continue
            inside |= {one.id for one in part.walk()}
        if part.id not in inside:
            yield part


def _others(client: Any, tree: Tree, known: dict[str, str]) -> dict[str, str]:
    """Return how many wallets match each of the other parts, by itself."""
    from nbext.analysis.segments import SCOPE

    scope = {key: tree.scope[key] for key in SCOPE[:3] if key in tree.scope}
    rest = (part for part in tree.root.walk() if str(part.id) not in known)
    if not (parts := list(itertools.islice(rest, MAX_COMPARED))):
        return {}
    asked = [(filters.alone(part, scope), "AND") for part in parts]
    found = client.counts(asked, [[place] for place in range(len(parts))])["counts"]
    return {
        str(part.id): f"{'not ' * part.negated}{count:,}"
        for part, count in zip(parts, found, strict=False)
    }
