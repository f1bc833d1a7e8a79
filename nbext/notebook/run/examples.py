"""``nbext examples`` and ``%nbext examples``: a copy of the notebooks, to run and to change."""

from __future__ import annotations

import argparse
from pathlib import Path

from nbext.core.atomic_files import ORDINARY, whole_file
from nbext.core.untrusted_text import visible
from nbext.errors import StorageError, UsageError

FOLDER = "nbext-examples"
_PACKAGE = Path(__file__).parents[2]
# In the wheel the notebooks are inside the package; in a clone they are beside it.
_SHIPPED, _CLONED = _PACKAGE / "example_notebooks", _PACKAGE.parent / "notebooks"
_COPIED, _NAMED = (".ipynb", ".py"), 3


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument(
        "folder", nargs="?", default=FOLDER, help=f"where to copy them to (default: {FOLDER})"
    )
    parser.add_argument("--overwrite", action="store_true", help="replace files that differ")


def run(args: argparse.Namespace) -> int:
    """Copy the notebooks, and print where they are."""
    print(copy_notebooks(args.folder, overwrite=args.overwrite))
    return 0


def copy_notebooks(folder: str, *, overwrite: bool = False) -> str:
    """Copy the notebooks and their helper files to a folder, and return a line that says so.

    A file that is there already with the same content stays; of others nothing is copied without ``overwrite``.

    Raises
    ------
    UsageError
        The folder has another file of one of these names.
    StorageError
        The folder cannot be written.
    """
    target, shown = Path(folder).expanduser(), visible(folder)
    try:
        target.mkdir(parents=True, exist_ok=True)
        wanted = {target / source.name: source.read_bytes() for source in files()}
        others = [
            path.name
            for path, data in wanted.items()
            if path.exists() and path.read_bytes() != data
        ]
        if others and not overwrite:
            more = f" and {len(others) - _NAMED} more" if len(others) > _NAMED else ""
            raise UsageError(
                f"{shown} has other files of these names: {', '.join(others[:_NAMED])}{more}. "
                "Nothing was copied. Name another folder, or add --overwrite to replace them."
            )
        for path, data in wanted.items():
            with whole_file(path, mode=ORDINARY) as part:
                part.write_bytes(data)
    except OSError as error:
        raise StorageError(f"{shown} cannot be written: {error.strerror}") from None
    count = sum(path.suffix == ".ipynb" for path in wanted)
    return f"{shown}: {count} notebooks. Open 01_quickstart.ipynb first."


def files() -> list[Path]:
    """Return the notebooks, and the files beside them that they use."""
    folder = _SHIPPED if _SHIPPED.is_dir() else _CLONED
    return sorted(
        path for path in folder.glob("*.*") if path.suffix in _COPIED and path.name != "conftest.py"
    )
