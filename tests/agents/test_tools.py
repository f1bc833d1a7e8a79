"""What an agent gets of each tool: the answers that a notebook gets, whole, with all that limits them."""

from __future__ import annotations

import csv
import json

import pytest

from nbext import Client
from nbext.agents.answers import plain
from nbext.agents.tools import TOOLS
from nbext.language.json_schema import json_schema
from nbext.notebook import schema
from tests.client.conftest import server, settings
from tests.client.faultserver import reply

__all__ = ["server", "settings"]
UNI = {"token": {"token": "UNI", "balance": {"min": "1000"}}}
NO_APES = {**UNI, "not": {"nft": {"nft": "BAYC"}}}
END = {"block": 24136000, "timestamp": "2026-01-01T00:00:00Z"}
OF = {"asOf": END, "data": "synthetic sample", "notes": []}
HOLDER = "0x0049fe2c364eb348e512afcffe17223837ef1607"
BURN = '{}: the burn address 0x...dEaD is a holder too, and is left out. "exclude": [] includes it.'


def test_the_list_of_tools_has_the_language_in_it_and_costs_a_model_less_than_3000_tokens(agent):
    tools = agent.tools()
    assert [tool.name for tool in tools] == [
        *("search", "describe", "count", "run", "explain"),
        *("funnel", "overlap", "changes", "wallet", "export"),
    ]
    # 3.5 characters to a token: JSON has more tokens than prose.
    whole = json.dumps([tool.model_dump(by_alias=True, exclude_none=True) for tool in tools])
    assert len(whole) / 3.5 < 3_000
    # `describe` has the language as it is served; the words of `count` have it in short, and nobody is asked for it.
    served = json_schema()
    conditions = served["$defs"].keys() - {"map"}
    fields = [
        f"{name}: {', '.join(schema.keys(served, ['filters', name]))}"
        for name in schema.keys(served, ["filters"])
        if name in conditions
    ]
    beside = [name for name in schema.keys(served, ["filters"]) if name not in conditions]
    assert (
        f"Conditions and their fields: {'; '.join(fields)}. Groups: {', '.join(beside[:3])}. "
        f"Beside them: {', '.join(beside[3:])}."
    ) in tools[2].description
    assert [tool.name for tool in tools if not tool.annotations.read_only_hint] == ["export"]


def test_whatever_a_table_holds_is_json_without_a_float_that_json_does_not_have():
    held = {"share": float("nan"), "most": [float("-inf"), 0.5, None], "amount": 2**70, "n": -3}
    said = {"share": None, "most": [None, 0.5, None], "amount": str(2**70), "n": -3}
    assert json.loads(json.dumps(plain(held), allow_nan=False)) == said


def test_a_count_says_in_words_what_was_counted(agent):
    words = "hold at least 1,000 UNI on ethereum and do not own BAYC on ethereum"
    answer = agent.call("count", filters=NO_APES)
    assert answer.structured_content == {"matched": 246, "words": words, **OF}
    # The first is for people, the second for clients that give their model no structured content.
    short, whole = (one.text for one in answer.content)
    assert (short, json.loads(whole)) == (f"246 wallets {words}", answer.structured_content)
    either = agent.ask("count", filters={**UNI, "nft": {"nft": "BAYC"}}, operator="OR")
    assert (either["matched"], either["notes"]) == (448, [BURN.format("BAYC")])


def test_the_first_rows_come_with_the_number_of_all(agent):
    answer = agent.call("run", filters={**UNI, "orderBy": "-UNI_balance"}, limit=2)
    found = answer.structured_content
    assert found.pop("segmentId").startswith("sg_")
    assert [one["name"] for one in found.pop("columns")] == [
        *("address", "UNI_balance", "UNI_balance_raw")
    ]
    cut = "2 of 262 wallets; limit goes to 200, export, where it is offered, writes all"
    rows = found.pop("rows")
    assert found == {"matched": 262, **OF, "notes": [cut]}
    assert answer.content[0].text == f"262 wallets match; 2 wallets are here.\nnote: {cut}"
    # The one is rounded; the other exact, and text: no reader of JSON takes it for a double.
    assert [set(row) for row in rows] == [{"address", "UNI_balance", "UNI_balance_raw"}] * 2
    assert all(
        type(row["UNI_balance_raw"]) is str and len(row["UNI_balance_raw"]) > 20 for row in rows
    )
    assert int(rows[0]["UNI_balance_raw"]) >= int(rows[1]["UNI_balance_raw"])


def test_a_segment_that_ran_is_a_condition_of_the_next(agent):
    ran = agent.ask("run", filters=UNI)
    assert len(ran["rows"]) == 20
    again = agent.ask("count", filters={"segment": {"id": ran["segmentId"]}})
    assert again["matched"] == 262


def test_an_explanation_has_each_condition_counted(agent):
    found = agent.ask("explain", filters=NO_APES)
    assert found["canonical"]["filters"]["token"]["balance"] == {"min": "1000000000000000000000"}
    assert (found["matched"], found["parts"]) == (
        246,
        [
            {"words": "hold at least 1,000 UNI on ethereum", "matched": 262},
            {"words": "own BAYC on ethereum", "matched": 202},
        ],
    )


def test_an_explanation_is_all_of_one_answer_so_that_no_data_comes_in_between(settings, server):
    said = {"matched": 3, "words": "wallets that hold UNI", "canonical": {}, "parts": []}
    explained = {**said, "asOf": END, "warnings": ["Mints are missing."]}
    server.script("GET /about", reply({"service": "nbext"}))
    server.script("POST /explain", reply(explained))
    client = Client(server.url, "k3y-that-must-not-show-0123456789", settings=settings())
    found = TOOLS["explain"].answer(client, None, {"filters": UNI})
    assert [one.path for one in server.requests] == ["/about", "/explain"]
    notes = {"asOf": END, "notes": ["Mints are missing."]}
    assert found.content() == {**said, "words": "hold UNI", **notes}
    assert found.said == "3 wallets hold UNI"


def test_a_funnel_an_overlap_and_changes_are_those_of_the_notebook(agent):
    rows = [
        {"condition": "hold at least 1,000 UNI on ethereum", "alone": 262, "remaining": 262},
        {"condition": "do not own BAYC on ethereum", "alone": 7883, "remaining": 246},
    ]
    assert agent.ask("funnel", filters=NO_APES) == {"rows": rows, **OF}
    apes = [{"filters": {"nft": {"nft": name}}} for name in ("BAYC", "MAYC")]
    assert agent.ask("overlap", segments=apes) == {
        "segments": ["own BAYC on ethereum", "own MAYC on ethereum"],
        "counts": [[202, 120], [120, 241]],
        **OF,
        "notes": [BURN.format("BAYC, MAYC")],
    }
    answer = agent.call("changes", filters=UNI, since="9999d")
    found = answer.structured_content
    assert [found[name] for name in ("joined", "left", "stayed")] == [260, 0, 2]
    assert {row["status"] for row in found["rows"]} == {"joined"}
    assert len(found["rows"]) == 20
    assert answer.content[0].text == (
        "260 joined, 0 left, 2 stayed\n"
        "note: 20 of 260 wallets that joined or left are here.\n"
        "note: The data of ethereum begins at 2025-01-01T00:15:00Z, and '9999d' reaches back further: "
        "this is all of it."
    )


def test_a_wallets_holdings_and_a_search_are_rows(agent):
    held = agent.ask("wallet", wallets=[HOLDER], chain="ethereum")
    assert [row["symbol"] for row in held["rows"][:3]] == ["UNI", "MKR", "LDO"]
    assert held["rows"][0]["amount_raw"] == "1720000000000000000000"
    then = agent.ask("wallet", wallets=[HOLDER], chain="ethereum", asOf="2025-01-02")
    assert then["asOf"] != held["asOf"]
    found = agent.ask("search", searchTerm="ape")
    assert [row["symbol"] for row in found["rows"]] == ["MAYC", "BAYC"]
    near = agent.call("search", searchTerm="azuky")
    assert near.structured_content["notes"] == [
        "No hit for 'azuky' of the type nft on ethereum. Near: 'AZUKI'."
    ]
    page = agent.ask("search", searchTerm="", type="token", limit=2)
    assert page["notes"] == ["2 of 30 hits; a larger offset returns the next"]


def test_the_language_is_described_as_the_service_publishes_it(agent):
    served = json_schema()
    whole = agent.ask("describe")
    assert list(whole["conditions"]) == list(schema.keys(served, ["filters"]))
    assert whole["chains"][0] == {
        "chain": "ethereum",
        "chainId": 1,
        "firstBlock": 21508075,
        "lastBlock": END["block"],
        "lastTimestamp": END["timestamp"],
    }
    for name in ("token", "transfer"):
        assert agent.ask("describe", condition=name)["schema"] == served["$defs"][name]
    beside = served["properties"]["filters"]["properties"]
    assert agent.ask("describe", condition="asOf")["schema"] == beside["asOf"]


def test_an_export_is_a_new_file_in_the_folder(agent):
    answer = agent.ask("export", filters=UNI, name="uni")
    assert answer == {"file": "uni.csv", "rows": 262, "bytes": answer["bytes"], **OF}
    path = agent.folder / "uni.csv"
    before = path.read_bytes()
    assert len(before) == answer["bytes"]
    assert len(list(csv.reader(before.decode().splitlines()))) == 263
    refused = agent.refused("export", filters=UNI, name="uni")
    detail = "The folder has a file uni.csv already. Choose another name."
    assert refused["errors"] == [{"pointer": "/name", "detail": detail, "got": "uni"}]
    # Nor over a link, be it one that leads nowhere.
    (agent.folder / "away.csv").symlink_to(agent.data / "nothing")
    assert agent.refused("export", filters=UNI, name="away")["error"] == "ValidationError"
    assert path.read_bytes() == before
    assert not (agent.data / "nothing").exists()
    (agent.folder / "away.csv").unlink()
    # Nor into the folder that a link leads to by now.
    aside = agent.folder.rename(agent.folder.with_name("aside"))
    agent.folder.symlink_to(agent.data)
    error = agent.refused("export", filters=UNI, name="other")
    agent.folder.unlink()
    aside.rename(agent.folder)
    assert error["detail"] == "The folder of `nbext mcp --folder` has moved."
    assert not (agent.data / "other.csv").exists()


ERRORS = [
    (
        "count",
        {
            "filters": {
                "tokn": {"token": "UNI"},
                "token": {"token": "UNI", "balance": {"min": "1e18"}, "chan": "x"},
            }
        },
        [
            ("/filters/tokn", "an object", "token"),
            ("/filters/token/balance/min", "1e18", None),
            ("/filters/token/chan", "x", "chain"),
        ],
    ),
    (
        "run",
        {"filters": "all", "limit": 5000, "operatr": "OR"},
        [("/operatr", "OR", "operator"), ("/filters", "all", None), ("/limit", 5000, None)],
    ),
    (
        "count",
        {"filters": {"token": {"token": "UNI", "balance": {"min": 0.5, "max": 1e30}}}},
        [("/filters/token/balance/min", 0.5, None), ("/filters/token/balance/max", 1e30, None)],
    ),
    ("count", {"filters": {}, "operator": "XOR"}, [("/operator", "XOR", None)]),
    ("describe", {"condition": "tokn"}, [("/condition", "tokn", "token")]),
    ("runn", {}, [("/tool", None, "run")]),
    ("wallet", {"wallets": ["vitalik.eth"]}, [("/wallets/0", "vitalik.eth", None)]),
    ("search", {"type": "nfts"}, [("/type", "nfts", "nft"), ("/searchTerm", None, None)]),
    (
        "export",
        {"filters": UNI, "name": "a/b", "format": "exe"},
        [("/name", "a/b", None), ("/format", "exe", None)],
    ),
    (
        "overlap",
        {"segments": [{"filters": UNI}, {"filters": {"nft": {"nft": "BAYCC"}}}]},
        [("/segments/1/filters/nft/nft", "BAYCC", "BAYC")],
    ),
    ("changes", {"filters": UNI, "since": "the flood"}, [("/since", "the flood", None)]),
    (
        "changes",
        {"filters": {**UNI, "asOf": "30d"}, "since": "30d"},
        [("/filters/asOf", "30d", None)],
    ),
]


@pytest.mark.parametrize(("tool", "asked", "wrong"), ERRORS)
def test_an_error_names_every_field_what_came_and_what_is_near(agent, tool, asked, wrong):
    errors = agent.refused(tool, **asked)["errors"]
    assert [(one["pointer"], one["got"], one.get("near")) for one in errors] == wrong


def test_an_ambiguous_symbol_comes_with_its_candidates(agent):
    found = agent.refused("count", filters={"nft": {"nft": "LAND"}})
    assert found["error"] == "AmbiguousSymbol"
    assert [(one["symbol"], one["name"]) for one in found["candidates"]] == [
        ("LAND", "Sandbox's LANDs"),
        ("LAND", "Decentraland"),
    ]
