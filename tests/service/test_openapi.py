"""The OpenAPI document: complete, true to the answers, and held to by schemathesis."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time

import jsonschema
import pytest

from nbext.language.json_schema import json_schema
from nbext.service.problems import CODES
from nbext.service.server import ROUTES
from tests.service.conftest import HOLDERS, KEY


@pytest.fixture(scope="module")
def document(service):
    return service.get("/openapi.json").json()


def shape(document, name):
    return {"$ref": f"#/components/schemas/{name}", "components": document["components"]}


def test_every_route_is_told_with_its_answers_problems_and_an_example_of_its_body(
    service, document
):
    routes = {
        (method.lower(), route.path) for route in ROUTES for method in route.methods - {"HEAD"}
    }
    told = {(method, path) for path, methods in document["paths"].items() for method in methods}
    assert routes == told
    assert document["openapi"].startswith("3.1.")
    for path, methods in document["paths"].items():
        for operation in methods.values():
            assert operation["description"]
            assert "401" in operation["responses"] or operation["security"] == [], path
            body = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
            assert "examples" in body or not body


def test_every_problem_that_the_service_knows_is_told(document):
    told = {
        code
        for methods in document["paths"].values()
        for operation in methods.values()
        for answer in operation["responses"].values()
        for code in answer.get("content", {})
        .get("application/problem+json", {})
        .get("examples", {})
    }
    # These are not a route's: what is no HTTP, and what has no route.
    assert set(CODES) - told == {"not-http", "method"}


def test_every_reference_leads_somewhere(document):
    known = {f"#/components/schemas/{name}" for name in document["components"]["schemas"]}
    assert set(re.findall(r'"\$ref": ?"([^"]+)"', str(document).replace("'", '"'))) <= known


def test_the_bounds_of_a_page_are_told(document):
    asked = document["paths"]["/v1/segment/{id}/json"]["get"]["parameters"]
    bounds = {
        one["name"]: tuple(one["schema"].get(name) for name in ("type", "minimum", "maximum"))
        for one in asked
        if one["in"] == "query"
    }
    assert bounds == {"limit": ("integer", 1, 1_000_000), "offset": ("integer", 0, 2**53)}


def test_each_example_of_an_answer_has_its_shape(document):
    found = [
        (content["schema"], example)
        for methods in document["paths"].values()
        for operation in methods.values()
        for answer in operation["responses"].values()
        for content in answer.get("content", {}).values()
        for example in [
            *([content["example"]] if "example" in content else []),
            *(each["value"] for each in content.get("examples", {}).values()),
        ]
    ]
    assert {schema["$ref"].rpartition("/")[2] for schema, _ in found} == {
        "SegmentAnswer",
        "SegmentRows",
        "ProblemAnswer",
    }
    for schema, example in found:
        jsonschema.Draft202012Validator({**schema, "components": document["components"]}).validate(
            example
        )


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/segment/execute", "ExecuteRequest"),
        ("/explain", "ExplainRequest"),
        ("/counts", "CountsRequest"),
        ("/funnel", "ExecuteRequest"),
        ("/holdings", "HoldingsRequest"),
        ("/profile", "ProfileRequest"),
        ("/changes", "ChangesRequest"),
        ("/v1/search", "SearchRequest"),
        ("/v1/signup/newsletter", "SignUpRequest"),
    ],
)
def test_each_example_of_a_body_has_its_shape_and_is_taken(service, document, path, body):
    content = document["paths"][path]["post"]["requestBody"]["content"]["application/json"]
    example = content["examples"]["example"]["value"]
    assert content["schema"] == {"$ref": f"#/components/schemas/{body}"}
    jsonschema.Draft202012Validator(shape(document, body)).validate(example)
    assert service.post(path, example).status_code in (200, 202)


def test_real_answers_have_the_shapes_that_are_told(service, document):
    segment = service.execute()
    answers = {
        "SegmentAnswer": segment,
        "SegmentRows": service.get(segment["links"]["json"]).json(),
        "TokenAnswer": service.get("/v1/tokens/ethereum/USDC").json(),
        "CollectionAnswer": service.get("/v1/nfts/ethereum/BAYC").json(),
        "SearchAnswer": service.post("/v1/search", {"searchTerm": "a"}).json(),
        "SignUpAnswer": service.post("/v1/signup/newsletter", {"email": "a@b.co"}).json(),
        "About": service.get("/about").json(),
        "Explained": service.post("/explain", {**HOLDERS, "parts": True}).json(),
        "Counted": service.post(
            "/counts",
            {"segments": [{"filters": HOLDERS["filters"]}], "counts": [[0]], "amounts": True},
        ).json(),
        "Funnel": service.post("/funnel", HOLDERS).json(),
        "Profile": service.post("/profile", {"filters": HOLDERS["filters"]}).json()["profile"],
        "ProblemAnswer": service.get("/v1/segment/none").json(),
        "Health": service.get("/healthz").json(),
        "Readiness": service.get("/readyz").json(),
    }
    for name, answer in answers.items():
        jsonschema.Draft202012Validator(shape(document, name)).validate(answer)


def test_the_docs_page_tells_every_path_without_script_or_anything_from_elsewhere(
    service, document
):
    text = service.get("/docs").text
    assert all(f"{path}</code>" in text for path in document["paths"])
    examples_of_the_language = json.dumps(json_schema())
    known = [
        name for name in symbols(service, nft=True) if f'"{name}"' not in examples_of_the_language
    ]
    assert known
    assert not [name for name in known if name in text], "it needs no key: nothing of the data"
    assert not re.search(r"<script|<link|<img|@import|url\(", text)


def symbols(service, *, nft: bool) -> list[str]:
    """Return symbols that name one contract each; an address-like one would be read as an address."""
    catalog = service.container.generations.newest.catalog
    plain = (
        name
        for name in catalog.symbols(1, nft=nft)
        if name.isalnum() and name.isascii() and name[0] != "0"
    )
    return sorted(name for name in plain if len(catalog.by_symbol(1, name, nft=nft)) == 1)[:25]


def narrowed(service, document):
    """Return the document with filters of which each that fits is accepted.

    The language's own schema passes what only the data and the parser know to be wrong: which contracts there are,
    how many decimals a token has, that a lower bound lies below the upper.
    """

    def closed(properties, required):
        return {
            "type": "object",
            "properties": properties,
            "required": required,
            "additionalProperties": False,
        }

    at_least = closed({"min": {"type": "integer", "minimum": 0, "maximum": 2**63 - 1}}, ["min"])
    conditions = {
        "wallet": closed({"contract": {"type": "boolean"}}, ["contract"]),
        "activity": closed({"transfers": at_least}, ["transfers"]),
        "token": closed({"token": {"enum": symbols(service, nft=False)}}, ["token"]),
        "nft": closed({"nft": {"enum": symbols(service, nft=True)}, "count": at_least}, ["nft"]),
    }
    inner = {**closed(conditions, []), "minProperties": 1}
    several = {"type": "array", "items": inner, "minItems": 1}
    filters = {**closed({**conditions, "not": inner, "any": several}, []), "minProperties": 1}
    document = json.loads(json.dumps(document))
    requests = ("ExecuteRequest", "ExplainRequest", "ProfileRequest", "ChangesRequest")
    for body in (*requests, "SegmentFilters"):
        document["components"]["schemas"][body]["properties"]["filters"] = filters
    # What is before the data's beginning, and which chains it has, only the data knows.
    holdings = document["components"]["schemas"]["HoldingsRequest"]["properties"]
    holdings["chain"] = {
        "enum": [chain["chain"] for chain in service.get("/about").json()["data"]["chains"]]
    }
    del holdings["asOf"]
    holdings["wallets"]["items"]["pattern"] = "^0x[0-9a-f]{40}$"
    document["components"]["schemas"]["ChangesRequest"]["properties"]["since"] = {
        "enum": ["1d", "30d"]
    }
    # No schema can say that a place is below the length of another list: counts have tests of their own.
    del document["paths"]["/counts"]
    # No schema can say that a body's length is a multiple of 20; lists of wallets have tests of their own.
    del document["paths"]["/lists"]
    # A result that was deleted is 410, which schemathesis takes for the refusal of a good request.
    cancel = document["paths"]["/v1/segment/{id}"]["delete"]
    cancel["parameters"] = [each for each in cancel["parameters"] if each["name"] != "result"]
    return document


def without_repeats(document):
    """Return the document without Idempotency-Key: one key with two bodies is refused, as no schema can say."""
    for path in document["paths"].values():
        for operation in path.values():
            if "parameters" in operation:
                operation["parameters"] = [
                    one for one in operation["parameters"] if one.get("name") != "Idempotency-Key"
                ]
    return document


@pytest.mark.parametrize(
    "examples",
    [pytest.param(20, marks=pytest.mark.load), pytest.param(100, marks=pytest.mark.long)],
)
def test_schemathesis_finds_nothing_in_examples_of_each_operation(
    service, document, tmp_path, examples
):
    contract = tmp_path / "openapi.json"
    contract.write_text(json.dumps(without_repeats(narrowed(service, document))), "utf-8")
    began = time.monotonic()
    found = subprocess.run(
        [
            sys.executable,
            "-m",
            "schemathesis.cli",
            "run",
            str(contract),
            "--url",
            service.url,
            "-H",
            f"x-api-key: {KEY}",
            "--phases",
            "examples,coverage,fuzzing,stateful",
            "-n",
            str(examples),
            "--seed",
            "20261121",
            "--no-color",
            "--continue-on-failure",
        ],
        capture_output=True,
        text=True,
        timeout=3600,
        check=False,
        cwd=tmp_path,  # it keeps a cache where it runs
    )
    print(
        f"schemathesis took {time.monotonic() - began:.0f} s:",
        *found.stdout.splitlines()[-12:],
        sep="\n",
    )
    assert found.returncode == 0, found.stdout[-8000:]
    paths = json.loads(contract.read_text("utf-8"))["paths"].values()
    operations = sum(
        method in ("get", "post", "put", "patch", "delete") for path in paths for method in path
    )
    assert f"{operations} selected / {operations} total" in found.stdout
    assert f"Tested: {operations}" in found.stdout
    assert not [line for line in service.lines() if line["level"] == "error"]
