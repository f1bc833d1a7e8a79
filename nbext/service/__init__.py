"""The eight operations over HTTP: keys, limits, stored segments. Knows FastAPI; SQL is in ``accounts`` and ``store``.

A request passes ``middleware`` (an id and the last catch, then host, origin, key and rate), a route of ``routes``, and
the part that does the work: ``segments``, ``accounts`` or ``metadata``. ``bodies`` reads what comes and writes answers.

    container   the parts of one running service, opened in order and closed in reverse; who asks it
    generations the data: the newest generation, and each before it until its last question has ended
    server      the application, and uvicorn, with time limits for slow connections and an orderly end
    limits      the limits that a service is started with
    scheduling  what one key may have of a process at once, turns at what Python does itself, the threads of segments
    metadata    tokens, collections and search hits, out of the engine's catalog
    middleware  what every request passes; the log and the metrics
    bodies      reads a body: JSON, at most 1 MiB, in time, strict; writes answers, with ETags, and segments among them
    problems    errors as problem objects: the table of codes, and which exception has which code
    contract    the OpenAPI document, the page of it, and which parameters it has of an operation
    routes      one function for each operation
    segments    segments from request to result
    accounts    keys and sign-ups, and the registry that all parts store in
    commands    what an operator runs
"""
