"""Who may ask, who signed up, and the SQLite file that all of the service stores in.

    database    the file: all its tables, the segments' too; connections and transactions
    keys        API keys, their scopes, and how often each may ask (SQL)
    signups     the newsletter's addresses (SQL)
"""
