"""``python -m tests.mutation``: see the package's docstring."""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from tests.mutation import run
from tests.mutation.mutants import changed_lines


def main() -> int:
    """Print what became of each mutant; return how many survived without a reason."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutation", description=__doc__)
    parser.add_argument("contexts", type=Path, help="the folder that tests.mutation.contexts wrote")
    parser.add_argument("--since", metavar="COMMIT", help="only mutants of the lines changed since")
    parser.add_argument("--mutants", type=int, default=40)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--minutes", type=float, default=5, help="no mutant begins after these")
    parser.add_argument(
        "--seconds", type=float, default=20, help="how long one mutant's tests take"
    )
    args = parser.parse_args()
    lines = set(changed_lines(_diff(args.since))) if args.since else None
    mutants = run.chosen(args.mutants, args.seed, lines)
    print(f"{len(mutants)} mutants, seed {args.seed}", flush=True)
    with tempfile.TemporaryDirectory(prefix="nbext-mutation-") as folder:
        return _tell(mutants, run.Contexts(args.contexts), Path(folder), args)


def _diff(commit: str) -> str:
    command = ["git", "diff", "--unified=0", "--no-color", commit, "--", "nbext"]
    return subprocess.run(command, cwd=run.ROOT, check=True, capture_output=True, text=True).stdout


def _tell(
    mutants: list[run.Mutant], contexts: run.Contexts, folder: Path, args: argparse.Namespace
) -> int:
    end = time.monotonic() + args.minutes * 60
    rooms: dict[str, Counter[bool]] = {}
    tree = run.copy_of_the_tree(folder)
    for mutant, verdict, took in run.verdicts(mutants, contexts, tree, args.seconds):
        print(f"{took:5.1f} s  {verdict}: {mutant}", flush=True)
        killed = verdict in {run.KILLED, run.HUNG}
        rooms.setdefault(run.room_of(mutant.file), Counter())[killed] += 1
        if time.monotonic() > end:
            print("The time is up.")
            break
    for room, found in sorted(rooms.items()):
        print(f"{room:18} {found[True]:3} of {found.total():3} killed")
    survived = sum(found[False] for found in rooms.values())
    total = sum(found.total() for found in rooms.values())
    print(f"{total - survived} of {total} killed")
    return min(survived, 100)


if __name__ == "__main__":
    sys.exit(main())
