"""One exchange with a service, within its deadline.

transport   a call and its attempts: send, follow redirects, read; whether to ask again, when, and how often in all
deadline    deadlines; connections that end on time and add the key's header; the cache of metadata
base_url    which address may be asked, who gets the key, and which redirects are followed
errors      what went wrong, as one of our errors, whose message never has the key
body        an answer and its body, decoded and bounded
tls         which certificates are trusted
"""
