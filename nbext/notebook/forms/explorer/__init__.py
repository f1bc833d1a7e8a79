"""The explorer: a whole table sorted, filtered and summed up in the kernel, a page of it at a time in the browser.

form        the form: what the page asks for, the rows that match, summaries, segments; the same table as one file that
            answers offline; live charts
columns     a table's columns: how each is sorted, filtered, summed up and written as text
"""
