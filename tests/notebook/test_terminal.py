"""nbext in IPython's terminal, as a process of its own: tables are text, and nothing waits for a page."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest

pytestmark = pytest.mark.slow
SEGMENT = '%segment {"token": {"token": "UNI", "balance": {"min": "1000000"}}}'


def in_a_terminal(tmp_path, *lines):
    """Return what IPython prints of each line that is typed into it."""
    ran = subprocess.run(
        [sys.executable, "-m", "IPython", "--simple-prompt", "--no-banner", "--colors=nocolor"],
        input="\n".join(["%load_ext nbext", *lines, ""]),
        env={**os.environ, "IPYTHONDIR": str(tmp_path), "NBEXT_PROGRESS": "false"},
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    said = re.split(r"^In \[\d+\]: (?:Out\[\d+\]: )?", ran.stdout, flags=re.MULTILINE)
    # Before the first line there is nothing, and after the last one a question.
    return [one.strip() for one in said[2:-1]]


TABLE = """\
address              UNI_balance
0x08459a47…0a876ab4    1,391,000
0x559cd33a…2769107b    1,075,800
0x6666e05d…975fb1df    5,288,600
0xdaa7a963…cd7ce7c3    1,090,500
0xfa0ea121…59490108    1,915,115

exact amounts: UNI_balance_raw"""
CELL = '{"token": {"token": "UNI", "balance": {"min": "1000000"}}}'
FORMS = {
    SEGMENT: TABLE,
    f"{SEGMENT} --explore": f"Table: 5 rows\n{TABLE}",
    '%nbext build {"token": {"token": "UNI", "balance": {"min": "1000000"}}}': f"""\
Segment builder: 5 wallets match.
Without the form, type:
%%segment_query segment
{CELL}""",
    "%nbext build": """\
Segment builder: Still to fill in: a condition.
Without the form, type:
%%segment_query segment
{"token": {"token": "UNI"}}""",
    "%nbext search ape": """\
Search collections and tokens: 'ape' in tokens and collections on ethereum: 1 to 3 of 3
Name                Symbol  Standard  Owners  Marks
MutantApeYachtClub  MAYC    ERC721    242     verified
ApeCoin             APE     ERC20     206     verified
BoredApeYachtClub   BAYC    ERC721    203     verified
Without the form, type:
%token search "ape" --chain ethereum
%nft search "ape" --chain ethereum""",
    "%nbext signup": """\
Newsletter sign-up: No sign-up was sent.
Without the form, type:
nbext.connect().sign_up("name@example.org")""",
    "%token ethereum UNI --card": """\
Token: Uniswap (UNI)
Name: Uniswap
Symbol: UNI
Address: 0x1f9840a85d5aF5bf1D1762F925BDADdC4201F984
Chain: ethereum
Decimals: 18
Total supply: 20,000,000 (20000000000000000000000000 in the smallest unit)
Holders: 1,002
Transfers: 1,455
Without the form, type:
%%segment_query holders
{
  "token": {
    "token": "0x1f9840a85d5af5bf1d1762f925bdaddc4201f984",
    "chain": "ethereum"
  }
}""",
    "%nbext history --card": f"""\
History: 2 queries, the last one first
2: {CELL} · 5 matched
1: {CELL} · 5 matched
Without the form, type:
%nbext history 2""",
}


def test_a_form_prints_what_it_holds_and_what_to_type_instead(tmp_path):
    said = in_a_terminal(tmp_path, *FORMS)
    # The first line waits for the service, which says what it has.
    said[0] = said[0][said[0].index("address ") :]
    assert dict(zip(FORMS, said, strict=True)) == FORMS
