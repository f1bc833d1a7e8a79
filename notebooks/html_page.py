"""A page of a notebook without the cells that only check it, on which long lines wrap, also in print.

    jupyter nbconvert --to html --config html_page.py NAME.ipynb
"""

from typing import Any

from nbconvert.preprocessors import Preprocessor
from nbformat.v4 import new_markdown_cell

_STYLE = """<style>.highlight pre, .jp-RenderedHTMLCommon code, .jp-OutputArea-output pre
{ white-space: pre-wrap !important; word-break: normal !important; overflow-wrap: anywhere !important; }</style>"""


class WrapLines(Preprocessor):
    """Add a style: with nbconvert's own, a printed page cuts off long lines of code, and breaks words."""

    def preprocess(self, nb: Any, resources: Any) -> tuple[Any, Any]:
        """Return the notebook with the style in a last cell."""
        nb.cells.append(new_markdown_cell(_STYLE))
        return nb, resources


c = get_config()  # noqa: F821 - nbconvert's
c.TagRemovePreprocessor.enabled = True
c.TagRemovePreprocessor.remove_cell_tags = {"remove-cell"}
c.HTMLExporter.preprocessors = [WrapLines]
