"""A server of the Model Context Protocol: an agent asks what a notebook asks, of the same service.

server      ``nbext mcp``: the protocol over stdin and stdout, one thread for each call, and what cancels it
tools       the tools that it offers: what each takes, and what it asks the client
history     what agents asked, in the user's data folder; the commands of a notebook that show it, and start a server
answers     tables and errors as data: nothing in them hides, no digit is lost, and what was left out is said
"""
