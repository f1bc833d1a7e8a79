"""The commands of ``%nbext`` that compare segments: a table, and its chart where matplotlib is installed."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from nbext.core.provenance import Provenance
from nbext.errors import UsageError
from nbext.notebook.cell.request import query_of
from nbext.notebook.line.options import Args, Word, value_of
from nbext.notebook.results.deliver import deliver

if TYPE_CHECKING:
    from nbext.analysis.segments import Result
    from nbext.notebook.session import Session

# Options that choose rows of one segment, or how they are returned.
_OF_ROWS = (
    "limit",
    "top",
    "by",
    "all",
    "count",
    "type",
    "dry_run",
    "explain",
    "bg",
    "card",
    "json",
    "csv",
)


def overlap(session: Session, args: Args, words: list[str]) -> Any:
    """Run ``%nbext overlap A B ...``."""
    from nbext.analysis import overlap

    asked, client = _segments(session, args), session.connected()
    named = dict(zip(_names(args), asked, strict=True))
    # Two words of one name get a number each from the names of a list.
    segments = named if len(named) == len(asked) else asked
    return _shown(
        session,
        args,
        "overlap",
        lambda: overlap(
            segments, share=bool(args["share"]), lift=bool(args["lift"]), client=client
        ),
    )


def of_one(session: Session, args: Args, words: list[str]) -> Any:
    """Run ``%nbext funnel SEGMENT``, ``concentration TOKEN``, ``trend SEGMENT`` or ``retention SEGMENT``."""
    from nbext.analysis import concentration, funnel, retention, trend

    (asked,), client = _segments(session, args), session.connected()
    known = {
        "funnel": funnel,
        "concentration": concentration,
        "trend": trend,
        "retention": retention,
    }
    analysis: Any = known[args.words[0].text]
    options = {
        name: args[name]
        for name in ("every", "since", "by", "cohort", "amounts")
        if args[name] is not None
    }
    if args["no_amounts"]:
        if args["amounts"] is not None:
            raise UsageError("Use --amounts or --no-amounts, not both.")
        options["amounts"] = False
    return _shown(
        session, args, args.words[0].text, lambda: analysis(asked, client=client, **options)
    )


def wallet(session: Session, args: Args, words: list[str]) -> Any:
    """Run ``%nbext wallet ADDRESS...``; a value from Python may be a list or a column of addresses."""
    from nbext.analysis import wallet

    asked = [one for word in args.words[1:] for one in _addresses(value_of(word, args))]
    if not asked:
        raise UsageError("%nbext wallet: name an address: %nbext wallet 0x...")
    client, as_of, chain = session.connected(), args["as_of"], args["chain"]
    return _shown(
        session, args, "wallet", lambda: wallet(asked, as_of=as_of, chain=chain, client=client)
    )


def _addresses(value: Any) -> list[str]:
    return [value] if isinstance(value, str) else [str(one) for one in value]


def of_query(session: Session, args: Args, segment: Any) -> Any:
    """Return what ``--changes`` or ``--profile`` asks for of a segment: its filters and operator, or its id."""
    from nbext.analysis import changes, profile

    asked = "profile" if args["profile"] else "changes"
    if args["profile"] and args["changes"] is not None:
        raise UsageError("Use --changes or --profile, not both.")
    for name in _OF_ROWS:
        if args[name] is not None:
            flag = f"--{name.replace('_', '-')}"
            raise UsageError(
                f"{flag} has no effect with --{asked}, which compares all wallets. Leave it out."
            )
    client = session.connected()
    if args["profile"]:
        return _shown(session, args, "profile", lambda: profile(segment, client=client))
    return _shown(
        session, args, "changes", lambda: changes(segment, args["changes"], client=client), _counts
    )


def _counts(made: Result) -> str:
    """Return how many wallets have each status, and between which blocks."""
    about = Provenance.of(made)
    counts = f"{about.joined:,} joined, {about.left:,} left, {about.stayed:,} stayed"
    then, now = (f"{(moment or {})['block']:,}" for moment in (about.then, about.as_of))
    return f"{counts} from block {then} to {now}"


def _segments(session: Session, args: Args) -> list[Any]:
    given = args.words[1:]
    if not given:
        raise UsageError(
            f"%nbext {args.words[0].text}: name a segment: a symbol, a table, an id, or {{filters}}."
        )
    return [segment(session, args, word) for word in given]


def segment(session: Session, args: Args, word: Word) -> Any:
    """Return what a word stands for: the table of that name, filters on the line, a symbol, an address or an id."""
    table = args.names.get(word.text) if word.kind in ("word", "python") else None
    if hasattr(table, "columns"):
        return table
    if word.kind == "json":
        query = query_of(word.text, args, session.settings["limit"])
        return {"operator": query.operator, "filters": query.filters}
    return value_of(word, args)


def _names(args: Args) -> list[str]:
    return [word.text for word in args.words[1:]]


def _shown(
    session: Session,
    args: Args,
    label: str,
    made: Callable[[], Result],
    say: Callable[[Result], str] | None = None,
) -> Any:
    """Deliver a table, as that of a query; display its chart where it is not only stored."""
    with session.bar(label):
        table = made()
    if say:
        print(say(table))
    from nbext.analysis import charts

    if args["out"] is None and charts.available() and len(table):
        from IPython.display import display

        display(table.chart())  # type: ignore[no-untyped-call]  # IPython's own
    return deliver(session, table, args)
