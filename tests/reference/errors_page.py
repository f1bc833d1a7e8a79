"""The page of errors: a troubleshooting guide keyed by the name that a notebook shows."""

from __future__ import annotations

import inspect

from nbext import errors
from nbext.errors import NbextError

# What to do about each error. An error without advice fails the page's test.
ADVICE = {
    "NbextError": "Every error of nbext derives from it: `except nbext.errors.NbextError` catches them all.",
    "UsageError": "Read the line with the caret. `%token?`, `%nft?`, `%segment?` and `%%segment_query?` show every "
    "option with examples that run.",
    "ConfigError": "The message names the setting and its allowed values. `%nbext config` shows where each value came from.",
    "NoService": 'Either `%nbext connect https://...` with a key, or `pip install "nbext[local]"` and run the cell again.',
    "ValidationError": "No request was sent. The message names the argument; `error.errors` lists every invalid field.",
    "InvalidSegment": "Each line starts with a JSON pointer into your query. `%nbext schema` lists what is allowed, "
    "`%nbext schema token` one condition.",
    "AmbiguousSymbol": "Take the address of the one you mean from `error.candidates`.",
    "ApiError": "The message is the service's own. `error.status` and `error.problem` hold the whole answer, with the request id that the "
    "service's operator needs.",
    "BadRequest": "On a remote, compare the body that `--dry-run` shows with "
    "that service's documentation.",
    "AuthError": "The key is missing, wrong, revoked or lacks a scope. `%nbext login` asks for another; `%nbext config` shows where "
    "the present one came from. On a service of yours, `nbext keys list` shows the valid keys.",
    "NotFound": "Check the chain and the address or id. The embedded service has only what was ingested; "
    "`%nbext status` shows whose data it has.",
    "Conflict": "Ask again in a moment, or use the address instead of the symbol.",
    "RateLimited": "Wait as long as the message says. One `%token` with many addresses respects the service's rate; a loop of cells "
    "does not.",
    "ServerError": "The fault is on the service's side. Run the cell again later: the same query has the same id and does not run twice. "
    "If it fails again, give the request id (`error.problem`) to the service's operator.",
    "TransportError": "Nothing was stored in your variable. The errors below say what to do.",
    "ConnectionFailed": "`%nbext status` shows the service's address. Check that it is spelt right, that the service runs there, and that no VPN or "
    "proxy blocks the way.",
    "TLSError": "The certificate is not trusted. If it is your own, set `ca_bundle` to its file, or add it to the system's certificates; the check cannot be "
    "switched off.",
    "DeadlineExceeded": "Allow more time (`%nbext set execute_deadline 900`), or resume with `%segment ID` and the id "
    "in the message.",
    "TruncatedResponse": "Run the cell again. If it fails again, a proxy on the way may cut long answers: ask for fewer rows with `--limit`.",
    "ResponseTooLarge": "Write it to a file instead (`--to rows.parquet`), or raise `max_body_mb`.",
    "ProtocolError": "The answer is not one of this interface; the message shows its beginning. Often a login "
    "page or a gateway answers in place of the service.",
    "AmbiguousAnswer": "Paste the line of settings that the message "
    "shows, for the reading you mean.",
    "NodeError": "The message says what the node refused. Where its history is pruned, use an archive node or begin later with "
    "`--from-block`; where its answers contradict each other, try another node. What was read before is ingested, and the same "
    "command goes on from there.",
    "OutcomeUnknown": "The connection broke, or the service answered 408, 425, 500 or 504, after the request was sent: it may have been carried "
    "out. Running a query again only costs a query. If the service honours Idempotency-Key, `%nbext set remote.idempotent true` lets nbext "
    "repeat a query under its key; `error.idempotency_key` is that of this attempt.",
    "ServiceDied": "It ended twice in a row. `%nbext status` shows where its log is; its last lines say why. `nbext check` checks the "
    "data.",
    "SegmentFailed": "The message is the service's reason. `%%segment_query --explain` shows the statements that the engine runs.",
    "SegmentExpired": "Run the query again: the same query on the same data gives the same id.",
    "QueryTimeout": "Ask with `--count` first, and narrow the query: a chain, a contract, a shorter time. Or allow more time, on a service "
    "of yours: `nbext serve --query-seconds 300`.",
    "ResourceLimit": "Narrow the query, or lower its `--limit`. If you cannot, [move past one machine](scaling.md).",
    "QueryCancelled": "You interrupted it; the variable has its old value.",
    "IngestError": "The message names the file and, where one row is at fault, the row. The data is as it was: a run is all or "
    "nothing. Correct the file or leave it out, and run `nbext ingest` again.",
    "OutOfMemory": "Allow more with `--memory 8GB`, or ingest fewer files at a time. What was stored before is whole.",
    "DiskFull": "Free some space, or give the data folder a larger disk. What was stored before is whole.",
    "StorageError": "`nbext check` says which file is damaged. If the disk is full, free some space. A damaged registry, result or list "
    "comes back from a copy that `nbext backup` made. Damaged chain data comes back from a whole copy of `generations` and `current`, or "
    "by `nbext ingest` of the files into a new folder.",
}


def page() -> str:
    """Return the page: the tree, then each error with its meaning and what to do."""
    tree = (errors.__doc__ or "").split("\n\n", 1)[1].strip()
    return (
        "# Errors, and what to do\n\n"
        "A notebook shows an error as its name and one message. `%env NBEXT_TRACEBACK=1` adds the traceback.\n\n"
        f"```text\n{tree}\n```\n"
        + "".join(f"\n## {name}\n\n{_meaning(name)}\n\n{ADVICE[name]}\n" for name in _names())
    )


def _names() -> list[str]:
    return [
        n
        for n, thing in vars(errors).items()
        if inspect.isclass(thing) and issubclass(thing, NbextError)
    ]


def _meaning(name: str) -> str:
    return (inspect.getdoc(getattr(errors, name)) or "").split("\n\n")[0].replace("\n", " ")
