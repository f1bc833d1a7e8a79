"""The explorer: a whole table sorted, filtered and summed up in the kernel, a page of it at a time in the browser.

form        the form: what is asked for by the page, the rows that match, the summaries, the segment
columns     a table's columns: how each is sorted, filtered, summed up and written as text
condition   what filters of columns mean as a segment
page.js     draws the table, its filters and summaries; every text is a text node
page.css    the looks of these
"""
