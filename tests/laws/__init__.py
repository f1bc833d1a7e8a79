"""Laws: what holds of every answer, whatever the data and the question.

* `test_answers`: over data drawn at random, questions with every field; each function in ``LAWS`` is a law.
* `test_fewer_rows`: data without some of its rows never gives an answer that seems more complete.
* `test_settings_of_strangers`: a setting under ``remote`` that finds nothing changes nothing, or is said.
* `test_said_in_python`: what a magic prints beside its table, the same call in Python warns of.
* `test_notes`: each note that the code can make has a question here that gets it, or tests of its own.

A new law is a function with its sentence as the docstring, added to the list or table of its file. A law says no number
and knows no oracle: it compares an answer with another answer. A question of its own is drawn by
`tests.oracle.asking.Asking`. ``TESTS_SEED`` repeats a run of random data, ``LAWS_EXAMPLES`` (8) makes it longer.
"""
