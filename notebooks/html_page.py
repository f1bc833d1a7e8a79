"""A page of a notebook without the cells that only check it, on which long lines wrap, also in print.

jupyter nbconvert --to html --config html_page.py NAME.ipynb
"""

import os
import re
from html import escape
from typing import Any

from nbconvert.preprocessors import Preprocessor
from nbformat.v4 import new_markdown_cell

_STYLE = """<style>.highlight pre, .jp-RenderedHTMLCommon code, .jp-OutputArea-output pre
{ white-space: pre-wrap !important; word-break: normal !important; overflow-wrap: anywhere !important; }
@media print { h1, h2, h3 { break-after: avoid; }
.highlight pre, .jp-OutputArea-output pre { font-size: 11px !important; } }</style>"""


class MakePage(Preprocessor):
    """Remove cells after `--execute` has run them: nbconvert's own TagRemovePreprocessor does so before."""

    def preprocess(self, nb: Any, resources: Any) -> tuple[Any, Any]:
        """Return the notebook without its hidden cells, with words for its pictures and a style in a last cell.

        With nbconvert's own style a printed page cuts off long lines of code, and breaks words.
        """
        nb.cells = [cell for cell in nb.cells if "remove-cell" not in cell.metadata.get("tags", [])]
        # Links lead to what is beside the notebook, and the page may be written to another folder.
        folder = resources.get("metadata", {}).get("path", "") or "."
        page = dict(self.config.FilesWriter).get("build_directory") or folder
        beside = os.path.relpath(folder, page)
        for cell in nb.cells:
            for output in cell.get("outputs", []):
                about = output.get("metadata", {}).get("image/png", {})
                # nbconvert's own page has no words for a picture: ours say them, others' are beside their cell.
                words = about.get("alt") or cell.metadata.get("alt")
                if words and "image/png" in output.get("data", {}):
                    width = f' width="{about["width"]}"' if "width" in about else ""
                    picture = output.data["image/png"].replace("\n", "")
                    output.data["text/html"] = (
                        f'<img alt="{escape(words)}"{width} src="data:image/png;base64,{picture}">'
                    )
            if cell.cell_type == "markdown" and beside != ".":
                cell.source = re.sub(r"\]\((?=[\w.-]+\))", f"]({beside}/", cell.source)
        nb.cells.append(new_markdown_cell(_STYLE))
        return nb, resources


c = get_config()  # noqa: F821 - nbconvert's
c.HTMLExporter.preprocessors = [MakePage]
