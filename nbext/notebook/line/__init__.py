"""A magic's first line.

tokenizer   the line as words: quotes, inline JSON, {{python}}, comments
options     the grammar of options: parsing, errors with carets, help
grammars    the options, help and examples of each magic
"""
