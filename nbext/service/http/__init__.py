"""Bodies in, answers out.

    bodies      reads a body: JSON, at most 1 MiB, in time, strict
    responses   answers as JSON, with ETags; a segment as the operations describe it; times as text
    problems    errors as problem objects: the table of codes, and which exception has which code
    openapi     the shapes of answers and bodies, as FastAPI reads them, and the OpenAPI document
"""
