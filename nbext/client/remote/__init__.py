"""The decoder of a stranger's answers, whose shapes are not known. It never guesses between two equal readings.

reading      the decoder: an answer as a table, a job, a record or a receipt, or where to find either
content      a page: one answer, and which kind of body it has: JSON, wrapped by a gateway, CSV, read while it arrives
tables       tables and records in a JSON document, and lists of the files that hold a table
field_names  the names and words that services use, and the rules of what a field says by its name and its value, which
             are in words.toml, each with a vendor that uses it; what they say of a job's state, and of an error that
             comes under status 200
signs        what an answer says of rows beyond its own: where the next page is, and how many rows there are
paging       all rows, from page to page, or an error that says what would complete them
profile      what the settings say of all this, and the profiles of known services, which are in profiles.toml; the
             outline of the last answer, and the settings that would read it otherwise
"""
