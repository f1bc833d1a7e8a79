"""Who may ask, who signed up, and the registry that all of the service stores in, in SQLite or PostgreSQL.

database    the registry: its tables, the segments' too, its connections and transactions, also to a server that hangs
keys        API keys, their scopes, and how often each may ask (SQL)
audit       who did what (SQL)
signups     the newsletter's addresses (SQL)
"""
