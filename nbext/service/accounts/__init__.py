"""Who may ask, who signed up, and the registry that all of the service stores in, in SQLite or PostgreSQL.

schema      the registry's tables, the segments' too
database    its connections and transactions; makes the tables
keys        API keys, their scopes, and how often each may ask (SQL)
audit       who did what (SQL)
signups     the newsletter's addresses (SQL)
"""
