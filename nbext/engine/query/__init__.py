"""What engines share to answer a question.

sql         statements as text with named values, and how they are written; base and delta read as one
amounts     amounts of up to 256 bits in SQL, their sort keys, and bounds
set_tree    a segment's wallets as a tree of sets: statements and lists; and, or, not, among
bitmaps     sets of wallets in memory, at one block or at many
series      questions that differ in their block alone, as one
answers     the strategy: sets, order, rows, counts, sums, explanations
explain     statements and how they are combined, for people to read
rows        an answer's rows: made by column, stored aside, read in batches
"""
