"""A magic's first line.

options     the line as words, and the grammar of options: parsing, errors with carets, help; what a command is
names       the names that expressions may use, where the magic is called
"""
