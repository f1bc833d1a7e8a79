"""A cell's text: it defines what makes a builder show all that it can."""

FULL_BUILDER = """import nbext
def full_builder(query, client=None):
    "The builder with every kind of condition and of group beside the query, and every line opened."
    form = nbext.segment_form(query, client=client)
    for key in form.grammar.groups:
        form.add("token", into=form.add(key).id)
    for key in form.grammar.conditions:
        form.add(key)
    form.lines.show(opened=[0, *(part.id for part in form.edits.now.root.walk())])
    return form
"""
