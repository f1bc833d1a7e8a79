"""One exchange with a service, within its deadline.

transport   a call and its attempts: send, follow redirects, read; whether to ask again, when, and how often in all
deadline    deadlines, the connections that end on time and carry the key, and metadata that was read before
base_url    which address may be asked, who gets the key, and which redirects are followed
errors      what went wrong, as one of our errors, whose message never has the key
body        an answer and its body, decoded and bounded
"""
