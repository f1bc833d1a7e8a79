"""Each change of the registry's tables, in the order of their numbers; Alembic runs them.

v0002_shared  the file of one service becomes the registry of many
"""
