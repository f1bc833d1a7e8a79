"""A cell's text: it defines what makes a builder show all that it can."""

FULL_BUILDER = '''import nbext
def full_builder(query, client=None):
    "The builder with every kind of condition and of group beside the query, and every field shown."
    form = nbext.segment_form(query, client=client)
    for key in [*form.grammar.groups, *form.grammar.conditions]:
        editor = form.top.add(key)
        if key in form.grammar.groups:
            editor.add("token")
    for editor in form.top.walk():
        if hasattr(editor, "unfold"):
            editor.unfold()
    form._unfold()
    return form
'''
