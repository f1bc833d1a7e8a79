"""The page of the Python client: what each public name's docstring says, and an example of it over the sample."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from typing import Any

import nbext
from tests.reference.shown import output, sample, transcript

_UNI = '{"token": {"token": "UNI", "balance": {"min": "1000"}}}'
# In the order in which they run, in one session; each name has at least one.
EXAMPLES: dict[str, str] = {
    "connect": 'client = nbext.connect()\nclient.about()["engine"]',
    "Client": "second = nbext.Client(client.base_url, client.key)\nsecond.is_ours",
    "Client.execute_segment": f"""whales = client.execute_segment({_UNI}, limit="all")
len(whales), whales["UNI_balance"].sum()""",
    "Client.request_for": f'client.request_for({_UNI})["body"]["limit"]',
    "Client.segment": """one = client.segment(whales.attrs["nbext"]["segment_id"])
one[["status", "matched", "returned", "truncated"]]""",
    "Client.export_csv": 'client.export_csv(whales.attrs["nbext"]["segment_id"], to="whales.csv")',
    "Client.export_json": 'len(client.export_json(whales.attrs["nbext"]["segment_id"]))',
    "Client.cancel": 'client.cancel(whales.attrs["nbext"]["segment_id"])',
    "Client.tokens": 'client.tokens("ethereum", ["USDC", "UNI"])[["symbol", "decimals", "holders"]]',
    "Client.nfts": 'client.nfts("ethereum", "BAYC")[["symbol", "name", "ownerCount"]]',
    "Client.search_nfts": 'client.search_nfts("bored ape", limit=2)[["name", "ownerCount"]]',
    "Client.counts": """both = [({"token": {"token": name}}, "AND") for name in ("UNI", "USDC")]
client.counts(both, [[0], [1], [0, 1], [0, ~1]])["counts"]""",
    "Client.funnel": 'client.funnel({"token": {"token": "UNI"}, "nft": {"nft": "BAYC"}}, sample=1)["sample"]',
    "Client.explain": f'client.explain({_UNI})["words"]',
    "Client.segment_changes": 'client.segment_changes({"token": {"token": "UNI"}}, since="30d").shape',
    "Client.segment_profile": 'sorted(client.segment_profile({"token": {"token": "UNI"}}))',
    "Client.holdings": 'len(client.holdings(whales["address"], "ethereum"))',
    "Client.schema": "sorted(client.schema())",
    "Client.sign_up": 'client.sign_up("ada@example.com")',
    "Client.data": "len(client.data)",
    "Client.key": "client.key",
    "Client.outline": "client.outline is None",
    "Client.about": "sorted(client.about())",
    "Client.is_ours": "client.is_ours",
    "Client.base_url": "client.base_url",
    "Client.profile": "client.profile",
    "addresses": """nbext.addresses("0x00000000000000000000000000000000000000a1, vitalik.eth", left_out=True)""",
    "AnswerWarning": """import warnings
with warnings.catch_warnings(record=True, action="always") as told:
    client.execute_segment({"token": {"token": "UNI"}}, limit=2)
told[0].message""",
    "wallet": 'nbext.wallet(whales["address"].iloc[0])[["symbol", "amount"]].head(2)',
    "changes": 'nbext.changes("UNI", "30d")["status"].value_counts().to_dict()',
    "concentration": 'nbext.concentration("UNI")',
    "funnel": 'nbext.funnel({"token": {"token": "UNI"}, "nft": {"nft": "BAYC"}})',
    "overlap": 'nbext.overlap(["UNI", "USDC"])',
    "profile": 'nbext.profile("UNI")[["symbol", "wallets", "lift"]].head(2)',
    "retention": 'nbext.retention("UNI", by="quarter", since="1y").iloc[:2, :3]',
    "trend": 'nbext.trend("UNI", every="30d", since="90d")[["block", "count"]]',
    "payout": """claims = nbext.payout(whales, "1000", "UNI", "proportional", cap="100", to="drop")
claims[["address", "amount"]].head(2)""",
    "proof": 'nbext.proof("drop", claims["address"].iloc[0])["amount"]',
    "explore": "nbext.explore(whales)",
    "page": 'nbext.page(whales, "holders.html")',
    "show": "nbext.show(whales)",
    "segment_form": "nbext.segment_form(whales)",
    "search_form": 'nbext.search_form("ape")',
    "signup_form": "nbext.signup_form()",
    "Client.close": "client.close()",
}
_SECTION = re.compile(r"\n(\w+)\n-+\n")


def names() -> Iterator[tuple[str, Any]]:
    """Yield each public name of the package with what it is, and of the client each method and property."""
    for name in nbext.__all__:
        found = getattr(nbext, name)
        # The module of that name takes the function's place once it is imported, by whichever page.
        yield name, getattr(found, name, found)
    for name, member in inspect.getmembers(nbext.Client):
        if not name.startswith("_"):
            yield f"Client.{name}", member


def page() -> str:
    """Return the page: what each name says of itself, and what its example shows."""
    known = dict(names())
    with sample() as shell:
        shell.value("import nbext")
        sections = [
            f"\n## {name}\n\n{_described(name, known[name])}\n{transcript([(cell, output(shell, cell))])}"
            for name, cell in EXAMPLES.items()
        ]
    return (
        "# In Python\n\n`import nbext` has what the magics have: the same answers, and notes as warnings. The examples "
        "run one after the other, over the sample; `...` ends what is longer.\n" + "".join(sections)
    )


def _described(name: str, found: Any) -> str:
    """Return a docstring as Markdown, below how the name is called."""
    text = re.sub(r"``(.*?)``", r"`\1`", inspect.getdoc(found) or "")
    first, *rest = _SECTION.split(f"\n{text}\n")
    parts = [first.strip()]
    for title, body in zip(rest[::2], rest[1::2], strict=True):
        if title != "Examples":
            parts.append(f"*{title}*\n\n{_listed(body)}")
    return "\n\n".join([*_called(name, found), *parts]) + "\n"


def _called(name: str, found: Any) -> list[str]:
    if not inspect.isfunction(found) and name != "Client":
        return []
    plain = [
        each.replace(annotation=inspect.Parameter.empty)
        for each in inspect.signature(found).parameters.values()
        if each.name != "self"
    ]
    shown = inspect.Signature(plain)
    return [f"`{name.replace('Client.', 'client.')}{shown}`"]


def _listed(body: str) -> str:
    """Return a section's terms as a list; one without terms as it is."""
    lines = body.strip("\n").splitlines()
    if not any(line.startswith("    ") for line in lines):
        return body.strip("\n")
    items = [
        f"* `{line}`:" if line and not line.startswith(" ") else line.strip() for line in lines
    ]
    return re.sub(r"\n(?!\*)", " ", "\n".join(line for line in items if line))
