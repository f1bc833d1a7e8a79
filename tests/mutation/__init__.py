"""Mutation: small faults are put into the code, one at a time, and each should make a test fail.

contexts     a pytest plugin that notes which tests run which lines: ``pytest -p tests.mutation.contexts``
mutants      the faults: another comparison, a dropped operand, a call left out, a narrower except, a word of SQL, ...
run          a copy of the tree, and a process forked for each mutant that runs the tests of its lines

``.ci/mutate COMMIT`` tries forty mutants of the lines changed since a commit. A survivor needs a test, or a line in
``equivalent.txt`` that says why nobody could see it. Compared: cosmic-ray makes 695 mutants of ``accounts/keys.py``,
407 of them of the ``|`` in annotations, and starts a whole pytest for each; mutmut 545, half of them arguments that
become None, and its copies of each function make the file 35 times as long; neither changes a word inside of SQL.
A new kind of fault is a function in `mutants._FAULTS`, or a pair in `mutants._IN_SQL`.
"""
