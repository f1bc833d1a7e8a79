"""The OpenAPI document: complete, true to the answers, and held to by schemathesis."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time

import jsonschema
import pytest

from nbext.language.language import json_schema
from nbext.service.app import ROUTES
from nbext.service.http import examples
from nbext.service.http.openapi import OPERATIONS
from nbext.service.http.problems import CODES
from tests.service.conftest import HOLDERS, KEY


@pytest.fixture(scope="module")
def document(service):
    return service.get("/openapi.json").json()


def shape(document, name):
    return {"$ref": f"#/components/schemas/{name}", "components": document["components"]}


def test_every_route_is_told_with_its_answers_problems_and_an_example_of_its_body(service, document):
    routes = {(method.lower(), route.path) for route in ROUTES for method in route.methods}
    told = {(method, path) for path, methods in document["paths"].items() for method in methods}
    assert routes == told == set(OPERATIONS)
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
        for methods in document["paths"].values() for operation in methods.values()
        for answer in operation["responses"].values()
        for code in answer.get("content", {}).get("application/problem+json", {}).get("examples", {})
    }
    # These are not a route's: what is no HTTP, and what has no route.
    assert set(CODES) - told == {"not-http", "method"}


def test_every_reference_leads_somewhere(document):
    known = {f"#/components/schemas/{name}" for name in document["components"]["schemas"]}
    assert set(re.findall(r'"\$ref": ?"([^"]+)"', str(document).replace("'", '"'))) <= known


@pytest.mark.parametrize("name", [name for name in examples.ANSWERS if name])
def test_each_example_of_an_answer_has_its_shape(document, name):
    jsonschema.Draft202012Validator(shape(document, name)).validate(examples.ANSWERS[name])


@pytest.mark.parametrize(
    ("path", "body"),
    [("/v1/segment/execute", "ExecuteRequest"), ("/explain", "ExplainRequest"), ("/v1/search", "SearchRequest"),
     ("/v1/signup/newsletter", "SignUpRequest")],
)
def test_each_example_of_a_body_has_its_shape_and_is_taken(service, document, path, body):
    jsonschema.Draft202012Validator(shape(document, body)).validate(examples.BODIES[body])
    assert service.post(path, examples.BODIES[body]).status_code in (200, 202)


def test_real_answers_have_the_shapes_that_are_told(service, document):
    segment = service.execute()
    answers = {
        "Segment": segment,
        "SegmentRows": service.get(segment["links"]["json"]).json(),
        "Token": service.get("/v1/tokens/ethereum/USDC").json(),
        "Collection": service.get("/v1/nfts/ethereum/BAYC").json(),
        "SearchAnswer": service.post("/v1/search", {"searchTerm": "a"}).json(),
        "SignUpAnswer": service.post("/v1/signup/newsletter", {"email": "a@b.co"}).json(),
        "About": service.get("/about").json(),
        "Explained": service.post("/explain", {**HOLDERS, "parts": True}).json(),
        "Problem": service.get("/v1/segment/none").json(),
        "Health": service.get("/healthz").json(),
    }
    for name, answer in answers.items():
        jsonschema.Draft202012Validator(shape(document, name)).validate(answer)


def test_the_docs_page_tells_every_path_without_script_or_anything_from_elsewhere(service, document):
    text = service.get("/docs").text
    assert all(f"{path}</code>" in text for path in document["paths"])
    symbols = document["components"]["schemas"]["ExecuteRequest"]["properties"]["filters"]["properties"]["nft"]
    examples_of_the_language = json.dumps(json_schema())
    known = [name for name in symbols["properties"]["nft"]["enum"] if f'"{name}"' not in examples_of_the_language]
    assert known
    assert not [name for name in known if f"&quot;{name}&quot;" in text], "it needs no key: nothing of the data"
    assert not re.search(r"<script|<link|<img|@import|url\(", text)


@pytest.mark.load
def test_schemathesis_finds_nothing_in_a_hundred_examples_of_each_operation(service, tmp_path):
    began = time.monotonic()
    found = subprocess.run(
        [sys.executable, "-m", "schemathesis.cli", "run", f"{service.url}/openapi.json", "-H", f"x-api-key: {KEY}",
         "--phases", "examples,coverage,fuzzing,stateful", "-n", "100", "--seed", "20261121", "--no-color",
         "--continue-on-failure"],
        capture_output=True, text=True, timeout=400, check=False, cwd=tmp_path,  # it keeps a cache where it runs
    )
    print(f"schemathesis took {time.monotonic() - began:.0f} s:", *found.stdout.splitlines()[-12:], sep="\n")
    assert found.returncode == 0, found.stdout[-8000:]
    assert "16/16" in found.stdout
    assert not [line for line in service.lines() if line["level"] == "error"]
