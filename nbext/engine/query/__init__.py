"""What engines share to answer a question.

sql         statements as text with named values, and how they are written; base and delta read as one
amounts     amounts of up to 256 bits in SQL, their sort keys, and bounds
set_tree    a segment's wallets as a tree of sets: statements and lists; and, or, not; how it reads
bitmaps     sets of wallets in memory, at one block or at the many of a series
answers     the strategy: sets, order, rows, counts, sums, explanations
rows        an answer's rows: made by column, stored aside, read in batches

From a condition to its rows in eight files: the condition's own and `nbext.language.model` (the segment around it, and
the columns of its rows); here `sql`, `set_tree`, `answers`, `bitmaps` and `rows`; and `nbext.engine.duckdb.dataset`,
which runs a statement.
"""
