"""One exchange with a service, within its deadline.

transport   a call and its attempts: send, follow redirects, read; whether to ask again, when, and how often in all
deadline    deadlines; connections that end on time, which certificates they trust, the key's header; the cache
base_url    which address may be asked, who gets the key, and which redirects are followed
errors      what went wrong, as one of our errors, whose message never has the key
body        an answer and its body, decoded and bounded
"""
