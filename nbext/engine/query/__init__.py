"""What engines share to answer a question.

set_tree    a segment's wallets as a tree of sets: and, or, not, among
amounts     amounts of up to 256 bits as expressions, their sort keys, and bounds
parameters  values taken out of a plan, and bound into its compiled statements
statements  a question's tree compiled to SQL, once for each shape
series      questions that differ in their block alone, as one
history     tables that conditions start from, now or as they were at a block
rows        an answer's rows: made by column, stored aside, read in batches
"""
