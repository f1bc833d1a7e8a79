"""A magic's first line.

options     the line as words, and the grammar of options: parsing, errors with carets, help
names       the names that expressions may use, where the magic is called
grammars    the options, help and examples of each magic
"""
