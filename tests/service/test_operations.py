"""The eight operations over real HTTP, on the sample data: whole answers."""

from __future__ import annotations

import csv
import io
import re

import pyarrow as pa
import pytest

from nbext.core.addresses import checksummed
from nbext.core.wire import NFT_FIELDS, SEARCH_FIELDS, TOKEN_FIELDS
from nbext.engine.dataset import DataAbout
from nbext.service.accounts.keys import Key
from nbext.service.middleware import MOST_KEYS, Metrics
from tests.service.conftest import HOLDERS, USDC, Running

BAYC = "0xbc4ca0eda7647a8ab7c2061c2e118a18a936f13d"


@pytest.fixture(scope="module")
def segment(service):
    return service.execute()


def test_a_segment_is_answered_with_all_that_is_known_of_it(service, segment):
    as_of = service.get("/v1/tokens/ethereum/USDC").json()["asOf"]
    known = {
        name: segment[name]
        for name in segment
        if name not in ("id", "createdAt", "completedAt", "preview")
    }
    path = f"/v1/segment/{segment['id']}"
    assert isinstance(known.pop("durationMs"), int)
    matched = known.pop("counts")["matched"]
    assert matched > 50
    assert known.pop("fingerprint") == service.get("/about").json()["data"]["fingerprint"]
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
            {
                "name": "USDC_balance",
                "type": "float64",
                "unit": "token",
                "symbol": "USDC",
                "chain": "ethereum",
                "address": USDC,
                "decimals": 6,
            },
            {
                "name": "USDC_balance_raw",
                "type": "uint256",
                "unit": "raw",
                "symbol": "USDC",
                "chain": "ethereum",
                "address": USDC,
                "decimals": 6,
            },
        ],
        "links": {
            "self": path,
            "json": f"{path}/json",
            "csv": f"{path}/csv",
            "arrow": f"{path}/arrow",
        },
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
    assert all(
        row["USDC_balance_raw"].isdigit() and int(row["USDC_balance_raw"]) >= 10**6
        for row in rows["data"]
    )
    assert all(row["USDC_balance"] == int(row["USDC_balance_raw"]) / 10**6 for row in rows["data"])
    assert [row["address"] for row in rows["data"]] == sorted(
        row["address"] for row in rows["data"]
    )
    assert len(rows["data"]) == 50
    answer = service.get(f"{path}/csv")
    assert answer.headers["content-type"] == "text/csv; charset=utf-8"
    lines = csv.DictReader(io.StringIO(answer.text))
    assert [{**line, "USDC_balance": float(line["USDC_balance"])} for line in lines] == rows["data"]
    arrow = pa.ipc.open_stream(service.get(f"{path}/arrow").content).read_all()
    assert [
        {**row, "USDC_balance_raw": str(row["USDC_balance_raw"])} for row in arrow.to_pylist()
    ] == rows["data"]
    assert arrow.schema == pa.schema(
        [
            ("address", pa.string()),
            ("USDC_balance", pa.float64()),
            ("USDC_balance_raw", pa.decimal128(38, 0)),
        ]
    )


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


@pytest.mark.parametrize("written", ["1_0", "%2B10", "10.0", "%2010", "1e1", "%D9%A1%D9%A0", ""])
def test_a_page_is_asked_for_in_digits_and_nothing_that_python_also_reads_as_a_number(
    service, segment, written
):
    answer = service.get(f"/v1/segment/{segment['id']}/json?limit={written}&offset={written}")
    assert (answer.status_code, answer.json()["detail"]) == (
        422,
        "limit: Input should be a valid integer\noffset: Input should be a valid integer",
    )


@pytest.mark.parametrize(
    ("method", "path", "name", "allowed"),
    [
        ("GET", "/json?limit=2&ofset=1", "ofset", "limit, offset"),
        ("GET", "/json?limit=2&limit=3", "limit", "limit, offset"),
        ("GET", "/csv?limit=2", "limit", "none"),
        ("GET", "/arrow?offset=", "offset", "none"),
        ("GET", "?wait=5", "wait", "none"),
        ("DELETE", "?results=delete", "results", "result"),
        ("DELETE", "?result=delete&result=", "result", "result"),
    ],
)
def test_a_parameter_that_is_unknown_or_sent_twice_is_named_and_no_other_rows_are_taken_for_those_asked(
    service, segment, method, path, name, allowed
):
    url = f"{service.url}/v1/segment/{segment['id']}{path}"
    answer = service.session.request(method, url, timeout=60)
    detail = f"There is no such parameter, or it is sent twice. Allowed: {allowed}."
    assert (answer.status_code, answer.json()["errors"]) == (
        422,
        [{"pointer": name, "code": "parameter", "detail": detail}],
    )


@pytest.mark.parametrize("path", ["/v1/segment/execute", "/explain"])
def test_a_key_that_a_segment_request_does_not_have_is_named(service, segment, path):
    # Also after the same request without it, whose plan is known; and one that only other operations have.
    for name, value in (
        ("limt", 3),
        ("profile", {"base": None, "least": 1}),
        ("since", 1),
        ("", 1),
    ):
        answer = service.post(path, {**HOLDERS, name: value})
        assert answer.status_code == 422
        assert [one["pointer"] for one in answer.json()["errors"]] == [f"/{name}"]


def test_limit_zero_counts_and_returns_nothing(service, segment):
    counted = service.execute({**HOLDERS, "limit": 0})
    assert counted["counts"] == {"matched": segment["counts"]["matched"], "returned": 0}
    assert (
        service.get(f"{counted['links']['csv']}").text
        == "address,USDC_balance,USDC_balance_raw\r\n"
    )
    assert service.get(f"{counted['links']['json']}").json()["data"] == []


def test_a_token_is_read_by_address_and_by_symbol(service):
    token = service.get(f"/v1/tokens/ethereum/{USDC}").json()
    assert list(token) == [*TOKEN_FIELDS, "warnings"]
    numbers = {name: token.pop(name) for name in ("holders", "transfers")}
    assert all(number > 0 for number in numbers.values())
    assert token == {
        "chain": "ethereum",
        "chainId": 1,
        "address": USDC,
        "checksumAddress": "0xA0b86991c6218b36c1d19D4a2e9Eb0cE3606eB48",
        "name": "USDC",
        "symbol": "USDC",
        "decimals": 6,
        "totalSupply": "200400000000000",
        "logo": None,
        "verified": True,
        "possibleSpam": False,
        "deployedBlockNumber": None,
        "asOf": token["asOf"],
        "warnings": [],
    }
    for same in ("usdc", "0xA0b86991c6218b36c1d19D4a2e9Eb0cE3606eB48"):
        assert service.get(f"/v1/tokens/eip155:1/{same}").json() == {**token, **numbers}


def test_a_collection_is_read_by_address_and_by_symbol(service):
    collection = service.get(f"/v1/nfts/ethereum/{BAYC}").json()
    assert list(collection) == [*NFT_FIELDS, "warnings"]
    assert collection["tokenType"] == "ERC721"
    assert collection["floorPrice"] is None
    assert service.get("/v1/nfts/1/bayc").json() == collection


@pytest.mark.parametrize("named", ["{etag}", 'W/{etag}, "other"', " * "])
def test_metadata_that_the_caller_has_is_not_sent_again(service, named):
    first = service.get("/v1/tokens/ethereum/USDC")
    etag = first.headers["ETag"]
    again = service.get(
        "/v1/tokens/ethereum/USDC", headers={"If-None-Match": named.format(etag=etag).strip()}
    )
    assert (again.status_code, again.content) == (304, b"")
    assert again.headers["ETag"] == etag
    assert first.headers["Cache-Control"] == "private, no-cache"


@pytest.mark.parametrize(
    ("path", "detail"),
    [
        (
            f"/v1/tokens/ethereum/{BAYC}",
            f"{BAYC} on ethereum is an NFT collection. Use: /v1/nfts/ethereum/{BAYC}, or %nft ethereum {BAYC}",
        ),
        (
            f"/v1/nfts/ethereum/{USDC}",
            f"{USDC} on ethereum is a token. Use: /v1/tokens/ethereum/{USDC}, or %token ethereum {USDC}",
        ),
        (
            "/v1/tokens/ethereum/bayc",
            "The data has no token with the symbol 'bayc' on ethereum. It is an NFT collection: "
            'write "nft" in filters, /v1/nfts in a path, %nft as a magic.',
        ),
        (
            "/v1/nfts/ethereum/usd coin",
            "The data has no collection with the symbol 'usd coin' on ethereum. It looks like a name: find it "
            'with /v1/search, or %nft search "usd coin", and write its symbol or its address.',
        ),
        (
            "/v1/tokens/polygon/UNI",
            "The data has no token with the symbol 'UNI' on polygon. It has one on ethereum, arbitrum: "
            'name that chain, as in "chain": "ethereum".',
        ),
        (
            f"/v1/tokens/base/{USDC}",
            f"The data has no contract {checksummed(USDC)} on base. It has one on ethereum: "
            'name that chain, as in "chain": "ethereum".',
        ),
        (
            "/v1/tokens/ethereum/USDX",
            "The data has no token with the symbol 'USDX' on ethereum. Did you mean 'USDT'?",
        ),
        (
            f"/v1/tokens/ethereum/0x{'1' * 40}",
            f"The data has no contract 0x{'1' * 40} on ethereum.",
        ),
        ("/v1/segment/none", "There is no segment with that id."),
        ("/v1/segment/none/csv", "There is no segment with that id."),
    ],
)
def test_what_is_not_there_is_404_and_says_what_to_do(service, path, detail):
    answer = service.get(path)
    assert (answer.status_code, answer.json()["code"], answer.json()["detail"]) == (
        404,
        "not-found",
        detail,
    )


def test_a_search_finds_collections_and_says_how_many(service):
    found = service.post(
        "/v1/search", {"type": "nft", "chain": "ethereum", "searchTerm": "bored"}
    ).json()
    assert [item["symbol"] for item in found["items"]][:1] == ["BAYC"]
    assert list(found["items"][0]) == list(SEARCH_FIELDS)
    assert found["total"] >= len(found["items"])
    assert (found["type"], found["chain"], found["searchTerm"]) == ("nft", "ethereum", "bored")


@pytest.mark.parametrize(
    ("asked", "warning"),
    [
        ({"searchTerm": "azuky"}, "No hit for 'azuky' of the type nft on ethereum. Near: 'AZUKI'."),
        (
            {"searchTerm": "bayc", "type": "token"},
            "No hit for 'bayc' of the type token on ethereum. "
            'There are collections: search with "type": "nft" (%nft search).',
        ),
        ({"searchTerm": "bored"}, None),
    ],
)
def test_a_search_without_a_hit_names_what_is_near_and_what_the_other_kind_has(
    service, asked, warning
):
    assert service.post("/v1/search", asked).json()["warnings"] == ([warning] if warning else [])


@pytest.mark.parametrize(
    "term", ["%", "_", "*", "\\", "' OR 1=1 --", "(a+)+$", "\U0001f600", "\u202e"]
)
def test_a_search_term_is_literal_text(service, term):
    answer = service.post("/v1/search", {"searchTerm": term})
    assert answer.status_code == 200
    assert all(term in f"{item['name']}{item['symbol']}" for item in answer.json()["items"])


@pytest.mark.parametrize(
    ("body", "errors"),
    [
        ({}, [("/searchTerm", "required")]),
        ({"searchTerm": None}, [("/searchTerm", "required")]),
        ({"searchTerm": "a\x00b"}, [("/searchTerm", "character")]),
        ({"searchTerm": "x" * 257}, [("/searchTerm", "length")]),
        (
            {
                "searchTerm": "x",
                "type": "nfts",
                "chain": "etherium",
                "limit": 0,
                "offset": -1,
                "tern": 1,
            },
            [
                ("/tern", "unknown-key"),
                ("/type", "type"),
                ("/chain", "chain"),
                ("/limit", "range"),
                ("/offset", "range"),
            ],
        ),
        ({"searchTerm": "x", "limit": True}, [("/limit", "range")]),
        ({"searchTerm": "x", "type": []}, [("/type", "type")]),
    ],
)
def test_a_search_that_is_not_allowed_names_every_field(service, body, errors):
    answer = service.post("/v1/search", body)
    assert answer.status_code == 422
    assert [(each["pointer"], each["code"]) for each in answer.json()["errors"]] == errors


def test_a_search_with_nine_thousand_unknown_fields_gets_a_short_answer(service):
    answer = service.post(
        "/v1/search", {"searchTerm": "x", **{f"k{number}": 0 for number in range(9_000)}}
    )
    problem = answer.json()
    assert (answer.status_code, len(problem["errors"]), problem["moreErrors"]) == (422, 20, 8_980)
    assert problem["detail"].splitlines()[-1] == "and 8,980 more errors"
    assert len(answer.content) < 10_000


def test_an_explanation_tells_the_words_the_statement_and_each_part(service, segment):
    answer = service.post("/explain", {**HOLDERS, "parts": True}).json()
    heading = ["words", "canonical", "asOf", "chains", "warnings"]
    assert list(answer) == ["id", *heading, "sql", "plan", "matched", "parts"]
    assert answer["matched"] == segment["counts"]["matched"]
    assert answer["id"] == segment["id"]
    assert answer["words"] == "wallets that hold at least 1 USDC on ethereum"
    assert [part["matched"] for part in answer["parts"]] == [segment["counts"]["matched"]]
    assert answer["canonical"]["filters"]["token"]["balance"] == {"min": "1000000"}


APES = [{"filters": {"nft": {"nft": name}}} for name in ("BAYC", "MAYC")]


def test_counts_of_what_segments_have_in_common_come_in_one_answer(service):
    together = [[0], [1], [1, 0], [0, -2], [1, -1]]
    counted = service.post("/counts", {"segments": APES, "counts": together}).json()
    both = {"all": [one["filters"] for one in APES]}
    matched = [
        service.execute({"filters": filters, "limit": 0})["counts"]["matched"]
        for filters in (*(one["filters"] for one in APES), both)
    ]
    alone = [one - matched[2] for one in matched[:2]]
    assert counted["counts"] == [*matched, *alone]
    assert matched[2] > 0
    assert [one["words"] for one in counted["segments"]] == [
        f"wallets that own {name} on ethereum" for name in ("BAYC", "MAYC")
    ]


@pytest.mark.parametrize(
    ("body", "pointer", "code"),
    [
        ({"segments": APES, "counts": [[0]], "limit": 1}, "/limit", "unknown-key"),
        ({"segments": APES, "counts": [[0]], "amounts": 1}, "/amounts", "type"),
        ({"segments": APES, "counts": [[0]], "amounts": "USDC"}, "/amounts", "unknown-symbol"),
        ({"counts": [[0]]}, "/segments", "size"),
        ({"segments": APES * 65, "counts": [[0]]}, "/segments", "size"),
        ({"segments": [*APES, 5], "counts": [[0]]}, "/segments/2", "type"),
        ({"segments": [{**APES[0], "limit": 1}], "counts": [[0]]}, "/segments/0", "type"),
        ({"segments": APES, "counts": []}, "/counts", "size"),
        ({"segments": APES, "counts": [[0]] * 4096}, "/counts", "size"),
        ({"segments": APES, "counts": [[0], [2]]}, "/counts/1", "range"),
        ({"segments": APES, "counts": [[]]}, "/counts/0", "range"),
        ({"segments": APES, "counts": [[0, 0]]}, "/counts/0", "range"),
        ({"segments": APES, "counts": [[-1]]}, "/counts/0", "range"),
        ({"segments": APES, "counts": [[0, -1]]}, "/counts/0", "range"),
        ({"segments": APES, "counts": [[0, -3]]}, "/counts/0", "range"),
        ({"segments": APES, "counts": [[True]]}, "/counts/0", "range"),
        (
            {"segments": [*APES, {"filters": {"nft": {"nft": "BAYX"}}}], "counts": [[0]]},
            "/segments/2/filters/nft/nft",
            "unknown-symbol",
        ),
    ],
)
def test_a_request_for_counts_that_is_not_allowed_names_the_field(service, body, pointer, code):
    answer = service.post("/counts", body)
    assert answer.status_code == 422
    assert [(each["pointer"], each["code"]) for each in answer.json()["errors"]] == [
        (pointer, code)
    ]


def test_a_funnel_counts_each_condition_alone_and_with_those_before_it(service):
    conditions = {
        "nft": {"nft": "BAYC"},
        "token": {"token": "USDC"},
        "not": {"nft": {"nft": "MAYC"}},
    }
    found = service.post("/funnel", {"filters": conditions}).json()
    so_far = {}
    assert len(found["steps"]) == 3
    for step, (key, one) in zip(found["steps"], conditions.items(), strict=True):
        so_far[key] = one
        for number, filters in (
            ("alone", {key: one}),
            ("alone", step["filters"]),
            ("remaining", so_far),
        ):
            counts = service.execute({"filters": filters, "limit": 0})["counts"]
            assert step[number] == counts["matched"], (step["words"], number)
    assert (
        found["words"] == f"wallets that {' and '.join(step['words'] for step in found['steps'])}"
    )
    segment = service.execute({"filters": conditions, "limit": 100})
    wallets = [
        row["address"] for row in service.get(f"/v1/segment/{segment['id']}/json").json()["data"]
    ]
    for limit, few in [(0, 0), (3, 3), (10_000, 10), (None, 10)]:
        asked = {"filters": conditions} | ({} if limit is None else {"limit": limit})
        assert service.post("/funnel", asked).json()["sample"] == wallets[:few]
    either = service.post("/funnel", {"operator": "OR", "filters": conditions}).json()
    (whole,) = either["steps"]
    assert whole["alone"] == whole["remaining"]
    assert whole["filters"].keys() == {"any"}


def test_about_says_whose_data_it_is(service):
    told = service.get("/about").json()
    assert (told["service"], told["grammar"], told["engine"]) == ("nbext", 2, "duckdb")
    assert told["data"]["synthetic"] is True
    assert {chain["chain"] for chain in told["data"]["chains"]} >= {"ethereum", "polygon", "base"}
    assert told["links"] == {"schema": "/schema", "openapi": "/openapi.json", "lists": "/lists"}


def test_the_schema_is_served_and_is_the_languages_own(service):
    from nbext.language.json_schema import json_schema

    assert service.get("/schema").json() == json_schema()


@pytest.mark.parametrize(
    ("body", "pointer", "code"),
    [
        ({"filters": {"tokn": {"token": "USDC"}}}, "/filters/tokn", "unknown-key"),
        ({"filters": {}}, "/filters", "empty-group"),
        ({**HOLDERS, "operator": "XOR"}, "/operator", "choice"),
        ({**HOLDERS, "limit": 10**9}, "/limit", "range"),
        ({**HOLDERS, "fileType": "exe"}, "/fileType", "choice"),
        (
            {**HOLDERS, "filters": {"token": {"token": "'; DROP TABLE wallets; --"}}},
            "/filters/token/token",
            None,
        ),
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


def test_metrics_tell_what_each_key_asked_and_got(data_dir, tmp_path):
    running = Running(data_dir, tmp_path)
    try:
        rows = running.execute()["counts"]["returned"]
        segment = running.execute()
        sent = [
            running.get(segment["links"][form] + options).content
            for form, options in [("csv", ""), ("arrow", ""), ("json", "?limit=7")]
        ]
        text = running.get("/metrics").text
        found = dict(re.findall(r'^nbext_key_(\w+)_total{key="owner"} (\S+)$', text, re.MULTILINE))
        assert (float(found["requests"]), float(found["rows"])) == (5, 2 * rows + 7)
        assert float(found["sent_bytes"]) > sum(map(len, sent))
        assert float(found["seconds"]) > 0
    finally:
        running.stop()


def test_metrics_name_the_data_that_is_served_and_the_room_on_the_disk(service):
    about = service.get("/about").json()["data"]
    text = service.get("/metrics").text
    assert f'nbext_data{{fingerprint="{about["fingerprint"]}",name="{about["name"]}"}} 1.0' in text
    for chain in about["chains"]:
        block = re.search(
            rf'^nbext_data_last_block{{chain="{chain["chain"]}"}} (\S+)$', text, re.MULTILINE
        )
        assert float(block[1]) == chain["lastBlock"]
    assert float(re.search(r"^nbext_disk_free_bytes (\S+)$", text, re.MULTILINE)[1]) > 0


def test_keys_past_a_thousand_share_one_count():
    metrics = Metrics([])
    for number in range(MOST_KEYS + 5):
        metrics.count("GET", "/", 200, Key(f"k{number}", ""), 0.1, 10, 1)
    metrics.count("GET", "/", 200, Key("k0", ""), 0.1, 10, 1)
    text = metrics.text(Key("k0", ""), DataAbout("none", False, "0", "duckdb", ())).decode()
    assert 'nbext_key_rows_total{key="k0"} 2.0' in text
    assert 'nbext_key_rows_total{key="other"} 5.0' in text
    assert text.count("nbext_key_rows_total{") == MOST_KEYS + 1
