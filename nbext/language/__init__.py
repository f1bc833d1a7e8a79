"""The segment language: from a request in JSON to a question for an engine. Knows no engine but its expressions.

language     the steps: parse, resolve, compile; the canonical form of a plan, its id, its questions
fields       the types of fields: how each is read, and its JSON Schema; limits
conditions/  one file for each condition: all that it is; groups, and keys beside the conditions
parse        the JSON as a query, or all its errors at once
lookup       chains, symbols, amounts and times of a query on some data
model        the query, the plan, and the columns of its rows
describe     the errors of one request, gathered, and phrases of a plan in English
json_schema  the schema of requests, and ``nbext schema``
"""
