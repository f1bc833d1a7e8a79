"""The explorer: a whole table sorted, filtered and summed up in the kernel, a page of it at a time in the browser.

form        the form: what the page asks for, the rows that match, summaries, and what filters mean as a segment
columns     a table's columns: how each is sorted, filtered, summed up and written as text
"""
