"""The decoder of a stranger's answers, whose shapes are not known. It never guesses between two equal readings.

reading      the decoder: an answer as a table, a job, or where to find either
content      which kind of body it is: JSON, CSV, or wrapped by a gateway
tables       tables in a JSON document
field_names  the names and words that services use for ids, states, rows and counts
paging       where the next page is, and how many rows there are said to be
profile      what the settings say of all this
"""
