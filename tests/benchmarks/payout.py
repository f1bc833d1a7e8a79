"""A payout's claims, trees and files, in CPU seconds: made-up wallets in a segment's order, and no service.

A hundred thousand claims and ten times as many. Files for Safe are written of the first alone: nobody sends 5,000
transactions.
"""

from __future__ import annotations

import argparse
import random
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from nbext.payouts.folder import Claims, write_files
from nbext.payouts.payout import shares
from tests.benchmarks.measure import apart, median
from tests.benchmarks.table import Row

CLAIMS = (100_000, 1_000_000)
TOTAL = 10**27
TOKEN = {"address": f"0x{1:040x}", "decimals": 18}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("--rounds", type=int, default=3)


def rows(args: argparse.Namespace) -> Iterator[Row]:
    """Yield a row for each number of claims."""
    for count in CLAIMS:
        taken = [apart(_taken, count) for _ in range(args.rounds)]
        yield Row(f"a payout of {count:,} claims, CPU seconds of all threads", median(taken))


def _taken(count: int) -> float:
    draw = random.Random(count)
    wallets = sorted(draw.getrandbits(160) for _ in range(count))
    weights = {f"0x{wallet:040x}": draw.getrandbits(80) + 1 for wallet in wallets}
    with tempfile.TemporaryDirectory() as folder:
        began = time.process_time()
        claims = Claims(shares(weights, TOTAL))
        manifest = {"token": TOKEN if count == CLAIMS[0] else None, **claims.outcome()}
        write_files(Path(folder), claims, manifest, {})
        return time.process_time() - began
