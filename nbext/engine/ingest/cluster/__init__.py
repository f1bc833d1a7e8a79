"""Ingest on a Spark cluster: files at any URL that Spark reads become one generation of tables at another.

run      the steps of a run: files are recognised, rows parsed, tables derived and published
files    the files at the given paths, in groups of equal columns, and their rows as text
stage    tables of Spark, and the statements of `nbext.engine.ingest.derive` in its dialect
"""
