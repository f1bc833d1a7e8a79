"""The eight operations over real HTTP, on the sample data: whole answers."""

from __future__ import annotations

import csv
import io

import pyarrow as pa
import pytest

from nbext.core.operations import NFT_FIELDS, SEARCH_FIELDS, TOKEN_FIELDS
from tests.service.conftest import HOLDERS, USDC

BAYC = "0xbc4ca0eda7647a8ab7c2061c2e118a18a936f13d"


@pytest.fixture(scope="module")
def segment(service):
    return service.execute()


def test_a_segment_is_answered_with_all_that_is_known_of_it(service, segment):
    as_of = service.get("/v1/tokens/ethereum/USDC").json()["asOf"]
    known = {name: segment[name] for name in segment if name not in ("id", "createdAt", "completedAt", "preview")}
    path = f"/v1/segment/{segment['id']}"
    assert isinstance(known.pop("durationMs"), int)
    matched = known.pop("counts")["matched"]
    assert matched > 50
    assert known == {
        "status": "completed",
        "operator": "AND",
        "filters": HOLDERS["filters"],
        "fileType": "json",
        "limit": 50,
        "chain": "ethereum",
        "chainId": 1,
        "asOf": as_of,
        "truncated": True,
        "columns": [
            {"name": "address", "type": "string"},
            {"name": "USDC_balance", "type": "uint256", "symbol": "USDC", "chain": "ethereum", "address": USDC,
             "decimals": 6},
        ],
        "links": {"self": path, "json": f"{path}/json", "csv": f"{path}/csv", "arrow": f"{path}/arrow"},
        "cached": False,
        "warnings": [],
        "error": None,
    }
    assert segment["createdAt"] <= segment["completedAt"]
    assert len(segment["preview"]) == 10


def test_asking_twice_is_free_and_gives_the_same_segment(service, segment):
    again = service.execute()
    assert again == {**segment, "cached": True}
    assert service.get(f"/v1/segment/{segment['id']}").json() == segment


def test_the_exports_hold_the_same_rows_exactly(service, segment):
    path = f"/v1/segment/{segment['id']}"
    rows = service.get(f"{path}/json").json()
    assert rows["id"] == segment["id"]
    assert rows["columns"] == segment["columns"]
    assert rows["page"] == {"limit": 100_000, "offset": 0, "total": 50, "next": None}
    assert rows["data"][:10] == segment["preview"]
    assert all(row["USDC_balance"].isdigit() and int(row["USDC_balance"]) >= 10**6 for row in rows["data"])
    assert [row["address"] for row in rows["data"]] == sorted(row["address"] for row in rows["data"])
    assert len(rows["data"]) == 50
    answer = service.get(f"{path}/csv")
    assert answer.headers["content-type"] == "text/csv; charset=utf-8"
    assert list(csv.DictReader(io.StringIO(answer.text))) == rows["data"]
    arrow = pa.ipc.open_stream(service.get(f"{path}/arrow").content).read_all()
    assert arrow.to_pylist() == rows["data"]
    assert arrow.schema == pa.schema([("address", pa.string()), ("USDC_balance", pa.string())])


def test_json_pages_lead_from_one_to_the_next_and_hold_each_row_once(service, segment):
    pages, path = [], f"/v1/segment/{segment['id']}/json?limit=20"
    while path:
        page = service.get(path).json()
        pages.append(page)
        path = page["page"]["next"]
    assert [page["page"]["offset"] for page in pages] == [0, 20, 40]
    whole = service.get(f"/v1/segment/{segment['id']}/json").json()["data"]
    assert [row for page in pages for row in page["data"]] == whole
    beyond = service.get(f"/v1/segment/{segment['id']}/json?offset=50").json()
    assert (beyond["data"], beyond["page"]["next"]) == ([], None)


def test_limit_zero_counts_and_returns_nothing(service, segment):
    counted = service.execute({**HOLDERS, "limit": 0})
    assert counted["counts"] == {"matched": segment["counts"]["matched"], "returned": 0}
    assert service.get(f"{counted['links']['csv']}").text == "address,USDC_balance\r\n"
    assert service.get(f"{counted['links']['json']}").json()["data"] == []


def test_a_token_is_read_by_address_and_by_symbol(service):
    token = service.get(f"/v1/tokens/ethereum/{USDC}").json()
    assert list(token) == list(TOKEN_FIELDS)
    numbers = {name: token.pop(name) for name in ("holders", "transfers")}
    assert all(number > 0 for number in numbers.values())
    assert token == {
        "chain": "ethereum", "chainId": 1, "address": USDC,
        "checksumAddress": "0xA0b86991c6218b36c1d19D4a2e9Eb0cE3606eB48", "name": "USDC", "symbol": "USDC",
        "decimals": 6, "totalSupply": None, "logo": None, "verified": True, "possibleSpam": False,
        "deployedBlockNumber": None, "asOf": token["asOf"],
    }
    for same in ("usdc", "0xA0b86991c6218b36c1d19D4a2e9Eb0cE3606eB48"):
        assert service.get(f"/v1/tokens/eip155:1/{same}").json() == {**token, **numbers}


def test_a_collection_is_read_by_address_and_by_symbol(service):
    collection = service.get(f"/v1/nfts/ethereum/{BAYC}").json()
    assert list(collection) == list(NFT_FIELDS)
    assert collection["tokenType"] == "ERC721"
    assert collection["floorPrice"] is None
    assert service.get("/v1/nfts/1/bayc").json() == collection


def test_metadata_that_the_caller_has_is_not_sent_again(service):
    first = service.get("/v1/tokens/ethereum/USDC")
    again = service.get("/v1/tokens/ethereum/USDC", headers={"If-None-Match": first.headers["ETag"]})
    assert (again.status_code, again.content) == (304, b"")
    assert again.headers["ETag"] == first.headers["ETag"]
    assert first.headers["Cache-Control"] == "private, max-age=60, must-revalidate"


@pytest.mark.parametrize(
    ("path", "detail"),
    [
        (f"/v1/tokens/ethereum/{BAYC}", f"{BAYC} on ethereum is an NFT collection. Read it under /v1/nfts."),
        (f"/v1/nfts/ethereum/{USDC}", f"{USDC} on ethereum is an ERC20 token. Read it under /v1/tokens."),
        ("/v1/tokens/ethereum/USDX", "The data has no symbol 'USDX' on ethereum. Did you mean 'USDT'?"),
        (f"/v1/tokens/ethereum/0x{'1' * 40}", f"The data has no contract 0x{'1' * 40} on ethereum."),
        ("/v1/segment/none", "There is no segment with that id."),
        ("/v1/segment/none/csv", "There is no segment with that id."),
    ],
)
def test_what_is_not_there_is_404_and_says_what_to_do(service, path, detail):
    answer = service.get(path)
    assert (answer.status_code, answer.json()["code"], answer.json()["detail"]) == (404, "not-found", detail)


def test_a_search_finds_collections_and_says_how_many(service):
    found = service.post("/v1/search", {"type": "nft", "chain": "ethereum", "searchTerm": "bored"}).json()
    assert [item["symbol"] for item in found["items"]][:1] == ["BAYC"]
    assert list(found["items"][0]) == list(SEARCH_FIELDS)
    assert found["total"] >= len(found["items"])
    assert (found["type"], found["chain"], found["searchTerm"]) == ("nft", "ethereum", "bored")


@pytest.mark.parametrize("term", ["%", "_", "*", "\\", "' OR 1=1 --", "(a+)+$", "\U0001f600", "\u202e"])
def test_a_search_term_is_literal_text(service, term):
    answer = service.post("/v1/search", {"searchTerm": term})
    assert answer.status_code == 200
    assert all(term in f"{item['name']}{item['symbol']}" for item in answer.json()["items"])


@pytest.mark.parametrize(
    ("body", "errors"),
    [
        ({}, [("/searchTerm", "required")]),
        ({"searchTerm": "  "}, [("/searchTerm", "required")]),
        ({"searchTerm": "a\x00b"}, [("/searchTerm", "character")]),
        ({"searchTerm": "x" * 257}, [("/searchTerm", "length")]),
        ({"searchTerm": "x", "type": "nfts", "chain": "etherium", "limit": 0, "offset": -1, "tern": 1},
         [("/tern", "unknown-key"), ("/type", "type"), ("/limit", "range"), ("/offset", "range"), ("/chain", "chain")]),
        ({"searchTerm": "x", "limit": True}, [("/limit", "range")]),
        ({"searchTerm": "x", "type": []}, [("/type", "type")]),
    ],
)
def test_a_search_that_is_not_allowed_names_every_field(service, body, errors):
    answer = service.post("/v1/search", body)
    assert answer.status_code == 422
    assert [(each["pointer"], each["code"]) for each in answer.json()["errors"]] == errors


def test_an_explanation_tells_the_words_the_statement_and_each_part(service, segment):
    answer = service.post("/explain", {**HOLDERS, "parts": True}).json()
    assert list(answer) == ["id", "canonical", "words", "sql", "plan", "parts"]
    assert answer["id"] == segment["id"]
    assert answer["words"] == "wallets that hold at least 1 USDC on ethereum"
    assert [part["matched"] for part in answer["parts"]] == [segment["counts"]["matched"]]
    assert answer["canonical"]["filters"]["token"]["balance"] == {"min": "1000000"}


def test_about_says_whose_data_it_is(service):
    told = service.get("/about").json()
    assert (told["service"], told["grammar"], told["engine"]) == ("nbext", 1, "duckdb")
    assert told["data"]["synthetic"] is True
    assert {chain["chain"] for chain in told["data"]["chains"]} >= {"ethereum", "polygon", "base"}
    assert told["links"] == {"schema": "/schema", "openapi": "/openapi.json"}


def test_the_schema_is_served_and_is_the_languages_own(service):
    from nbext.language.language import json_schema

    assert service.get("/schema").json() == json_schema()


@pytest.mark.parametrize(
    ("body", "pointer", "code"),
    [
        ({"filters": {"tokn": {"token": "USDC"}}}, "/filters/tokn", "unknown-key"),
        ({"filters": {}}, "/filters", "empty-group"),
        ({**HOLDERS, "operator": "XOR"}, "/operator", "choice"),
        ({**HOLDERS, "limit": 10**9}, "/limit", "range"),
        ({**HOLDERS, "fileType": "exe"}, "/fileType", "choice"),
        ({**HOLDERS, "filters": {"token": {"token": "'; DROP TABLE wallets; --"}}}, "/filters/token/token", None),
    ],
)
def test_a_segment_that_is_not_allowed_names_the_field(service, body, pointer, code):
    answer = service.post("/v1/segment/execute", body)
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid-segment")
    error = answer.json()["errors"][0]
    assert error["pointer"] == pointer
    assert code in (None, error["code"])


@pytest.mark.parametrize("symbol", ["%", "U_I", "*", "(a+)+$", "' OR 1=1 --", "x" * 10_000])
def test_what_looks_like_a_pattern_or_a_statement_is_a_symbol_that_nobody_bears(service, symbol):
    answer = service.post("/v1/segment/execute", {"filters": {"token": {"token": symbol}}})
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid-segment")
    assert answer.json()["errors"][0]["pointer"] == "/filters/token/token"


def test_ten_thousand_wallets_are_as_good_as_one_and_65_levels_are_refused(service):
    holder = service.execute()["preview"][0]["address"]
    listed = [holder, *(f"0x{number:040x}" for number in range(1, 10_000))]
    answer = service.execute({"filters": {"wallet": {"in": listed}}})
    assert answer["counts"] == {"matched": 1, "returned": 1}
    nested = HOLDERS["filters"]
    for _ in range(65):
        nested = {"not": nested}
    refused = service.post("/v1/segment/execute", {"filters": nested})
    assert (refused.status_code, refused.json()["code"]) == (400, "not-json")


def test_metrics_count_what_was_asked(service):
    service.get("/about")
    text = service.get("/metrics").text
    assert 'nbext_requests_total{method="GET",route="/about",status="200"}' in text
    assert "nbext_segments_running 0.0" in text
