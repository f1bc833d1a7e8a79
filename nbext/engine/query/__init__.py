"""What engines share to answer a question.

set_tree    a segment's wallets as a tree of sets: and, or, not, among
bounds      bounds of counts, amounts and blocks, as tests of columns
parameters  values taken out of a plan, and bound into its compiled statements
statements  a question's tree compiled to SQL, once for each shape
series      questions that differ in their block alone, as one
history     tables that conditions start from, now or as they were at a block
exact       amounts of up to 256 bits as expressions
rows        an answer's rows: made by column, stored aside, read in batches
sort_key    one 64-bit integer that orders amounts
"""
