"""HTTP for the client and for the node: one exchange within its deadline.

transport    a call and its attempts: send, follow redirects, read; whether to ask again, when, and how often in all
connections  connections that end on time, which certificates they trust, the key's header, proxies; the cache
deadline     deadlines, and the watches that they and Ctrl-C fire
base_url     which address may be asked, who gets the key, and which redirects are followed
errors       what went wrong, as one of our errors, whose message never has the key; secrets out of texts and logs
body         an answer and its body, decoded and bounded
"""
