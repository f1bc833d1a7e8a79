"""A page of a notebook without the cells that only check it.

    jupyter nbconvert --to html --config html_page.py NAME.ipynb
"""

c = get_config()  # noqa: F821 - nbconvert's
c.TagRemovePreprocessor.enabled = True
c.TagRemovePreprocessor.remove_cell_tags = {"remove-cell"}
