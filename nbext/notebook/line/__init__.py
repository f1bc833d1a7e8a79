"""A magic's first line.

options     the line as words, and the grammar of options: parsing, errors with carets, help
grammars    the options, help and examples of each magic
"""
