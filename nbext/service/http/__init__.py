"""Bodies in, answers out.

bodies      reads a body: JSON, at most 1 MiB, in time, strict; writes answers, with ETags, and segments among them
problems    errors as problem objects: the table of codes, and which exception has which code
contract    the OpenAPI document, and which parameters it has of an operation
"""
