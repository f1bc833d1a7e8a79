"""What a run reads.

files     which files: given paths, folders and globs; regular files only
reading   the format of each file, recognised by its columns, and its rows as a relation
tokens    what token files, contract files and token lists say of contracts
"""
