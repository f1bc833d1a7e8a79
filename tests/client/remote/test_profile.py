"""What the settings say of a stranger's answers, for all operations and for one."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

import nbext
from nbext import Client
from nbext.client.decode import State
from nbext.client.remote.profile import OPERATIONS, TABLES, ForeignProfile, builtins, with_profile
from nbext.errors import ConfigError, ProtocolError
from nbext.settings import Settings
from tests.client.conftest import KEY
from tests.client.faultserver import FaultServer, reply

BODY = {"job": {"no": 7, "team": "x"}, "hits": [1], "rows": [2]}


def test_what_is_said_for_one_operation_comes_before_what_is_said_for_all():
    remote = {"paths": {"rows": "rows", "id": "job.no"}, "search": {"paths": {"rows": "hits"}}}
    search, segment = ForeignProfile(remote, "search"), ForeignProfile(remote, "segment")
    assert [search.find("rows", BODY), search.find("id", BODY)] == [[1], 7]
    assert segment.find("rows", BODY) == [2]


def test_settings_come_before_a_profile_that_comes_with_nbext(monkeypatch):
    known = {
        "x": {
            "hosts": ["api.x.example"],
            "paths": {"id": "a", "total": "t"},
            "search": {"paths": {"rows": "b"}},
        }
    }
    monkeypatch.setattr("nbext.client.remote.profile.builtins", lambda: known)
    remote = with_profile({"paths": {"rows": "rows"}}, "api.x.example")
    assert remote == {"profile": "x", "paths": {"rows": "rows"}}
    search = ForeignProfile(remote, "search")
    assert [search.find("rows", BODY), search.find("id", {"a": 1})] == [[2], 1]
    assert with_profile({"profile": "none"}, "api.x.example") == {"profile": "none"}
    assert "total" not in ForeignProfile({"profile": "none"}).paths


def test_a_path_may_be_a_headers():
    profile = ForeignProfile({"paths": {"id": "header:X-Job", "next": "header:X-Next"}})
    headers = {"X-Job": "j-1", "X-Next": "/more"}
    assert [profile.find(name, BODY, headers) for name in ("id", "next", "url")] == [
        "j-1",
        "/more",
        None,
    ]
    assert [profile.find(name, BODY, {}) for name in ("id", "next")] == [None, None]


@pytest.mark.parametrize("done", [["FINI", 3, True], "fini, 3, true"])
def test_foreign_words_numbers_and_booleans_are_states(done):
    profile = ForeignProfile({"states": {"done": done, "failed": "completed"}})
    found = [
        profile.state_of(word) for word in ("Fini", "3", "True", "completed", "cancelled", "zzz")
    ]
    assert found == [*[State.COMPLETED] * 3, State.FAILED, State.CANCELLED, None]


def test_an_id_may_be_made_of_several_fields():
    profile = ForeignProfile({"paths": {"id": "join(':', [job.team, to_string(job.no)])"}})
    assert profile.find("id", BODY) == "x:7"


def test_columns_get_our_names_and_types_go_by_them():
    profile = ForeignProfile(
        {"columns": {"ticker": "symbol", "owner": {"id": "address"}}, "types": {"symbol": "string"}}
    )
    record = {"ticker": "A", "owner": {"id": "0x", "x": 1}}
    assert profile.renamed(record) == {
        "symbol": "A",
        "owner": {"id": "0x", "x": 1},
        "address": "0x",
    }
    assert profile.renamed({"owner": None}) == {"owner": None}
    assert profile.types_by_theirs == {"symbol": "string", "ticker": "string"}
    assert list(profile.renamed({"n": 1, "ticker": "x"})) == ["n", "symbol"]


@pytest.mark.parametrize(
    ("columns", "record"),
    [
        ({"a": "b"}, {"a": 1, "b": 2}),
        ({"a": "c", "b": "c"}, {"a": 1, "b": 2}),
        ({"a.x": "b"}, {"a": {"x": 1}, "b": 2}),
    ],
)
def test_two_columns_never_become_one(columns, record):
    with pytest.raises(
        ProtocolError, match=r"remote\.columns \(a.* = '[bc]'.* gives two columns the same name"
    ):
        ForeignProfile({"columns": columns}).renamed(record)


@pytest.mark.parametrize(
    ("remote", "error"),
    [
        ({"serch": {}}, "remote.serch is not a setting. Did you mean 'search'?"),
        (
            {"search": 5},
            'remote.search is a table, such as remote.search.paths.rows = "data.items".',
        ),
        (
            {"search": {"idempotent": True}},
            "remote.search.idempotent is not a setting. Allowed: paths, states, ",
        ),
        (
            {"nft": {"paths": {"rowz": "x"}}},
            "remote.nft.paths.rowz is not a setting. Did you mean 'rows'?",
        ),
        ({"nft": {"paths": {"rows": "a["}}}, "remote.nft.paths.rows: "),
        (
            {"states": {"ready": "x"}},
            "remote.states.ready is not a setting. Allowed: done, failed, running.",
        ),
        (
            {"paging": {"style": "curser"}},
            "remote.paging.style: 'curser' is not allowed. Did you mean 'cursor'?",
        ),
        ({"paging": "cursor"}, 'remote.paging is a table, such as remote.paging.style = "page".'),
        ({"types": {"n": "int"}}, "remote.types.n: 'int' is not allowed. Did you mean"),
        ({"idempotent": "yes"}, "remote.idempotent: 'yes' is not allowed. Allowed: true, false."),
        ({"known": "x"}, "remote.known is not a setting."),
        ({"nft": {"known": {"x": 1}}}, "remote.nft.known.x is not a setting."),
        ({"profile": "dunes"}, "remote.profile: 'dunes' is not allowed. Did you mean 'dune'?"),
    ],
)
def test_a_mistake_is_named_with_what_is_allowed(remote, error):
    with pytest.raises(ConfigError) as caught:
        ForeignProfile(remote)
    assert error in str(caught.value)


def test_a_sign_up_is_never_repeated_whatever_the_settings_say():
    with pytest.raises(ConfigError, match=r"remote\.signup\.idempotent is not a setting"):
        ForeignProfile({"signup": {"idempotent": True}})


@pytest.mark.parametrize("given", [True, "true", "True"])
def test_idempotent_is_true_however_it_is_written(given):
    assert ForeignProfile({"segment": {"idempotent": given}}).idempotent
    assert not ForeignProfile({}).idempotent


@pytest.mark.parametrize("name", builtins())
def test_the_profiles_that_come_with_nbext_are_valid(name):
    own = {key: value for key, value in builtins()[name].items() if key != "hosts"}
    for operation in OPERATIONS:
        assert ForeignProfile(own, operation).operation == operation


def test_each_host_has_one_profile():
    hosts = [host for profile in builtins().values() for host in profile.get("hosts", ())]
    assert sorted(hosts) == sorted(set(hosts))


A, B = "0x" + "aa" * 20, "0x" + "bb" * 20
HOLDER = {"contract_decimals": 18, "contract_address": B}
EDGES = [{"node": {"address": A}, "cursor": "x"}]
# What each known service's answers look like, by operation, and the rows that they mean.
KNOWN = {
    "dune": (
        "export",
        {
            "execution_id": "01H",
            "state": "QUERY_STATE_COMPLETED",
            "error": None,
            "next_uri": None,
            "result": {
                "rows": [{"address": A}],
                "metadata": {"total_row_count": 1, "column_names": ["address"]},
            },
        },
    ),
    "covalent": (
        "export",
        {
            "data": {"items": [{**HOLDER, "address": A}], "pagination": {"has_more": False}},
            "error": False,
            "error_message": None,
            "error_code": None,
        },
    ),
    "alchemy": ("export", {"owners": [A], "pageKey": None}),
    "moralis": (
        "export",
        {"cursor": None, "page": 1, "page_size": 100, "result": [{"owner_address": A}]},
    ),
    "blockscout": (
        "export",
        {"items": [{"address": {"hash": A}, "value": "3"}], "next_page_params": None},
    ),
    "etherscan": (
        "export",
        {
            "status": "1",
            "message": "OK",
            "result": [{"TokenHolderAddress": A, "TokenHolderQuantity": "34956"}],
        },
    ),
    "opensea": ("search", {"nfts": [{"identifier": "1", "address": A}], "next": None}),
    "graphql": (
        "search",
        {"data": {"found": {"edges": EDGES, "pageInfo": {"hasNextPage": False, "endCursor": "x"}}}},
    ),
    "jsonapi": (
        "search",
        {
            "data": [{"type": "n", "id": "1", "attributes": {"address": A}}],
            "links": {"next": None},
            "meta": {"total": 1},
        },
    ),
}


def asked(client, operation):
    return client.search_nfts("ape") if operation == "search" else client.export_json("abc")


@pytest.mark.parametrize("name", builtins())
def test_a_known_services_answer_is_read_by_its_profile(server, settings, name):
    operation, body = KNOWN[name]
    server.script("POST /v1/search", reply(body))
    server.script("GET /v1/segment/abc/json", reply(body))
    client = Client(server.url, KEY, settings=settings(remote=name))
    assert asked(client, operation)["address"].tolist() == [A]
    assert client.profile == name


@pytest.mark.parametrize(
    ("name", "first", "parameter", "last"),
    [
        ("alchemy", {"owners": [A], "pageKey": "k"}, "pageKey=k", {"owners": [B], "pageKey": None}),
        (
            "moralis",
            {"cursor": "c", "result": [{"owner_address": A}]},
            "cursor=c",
            {"result": [{"owner_address": B}]},
        ),
        (
            "opensea",
            {"nfts": [{"address": A}], "next": "n"},
            "next=n",
            {"nfts": [{"address": B}], "next": None},
        ),
        (
            "blockscout",
            {"items": [{"address": {"hash": A}}], "next_page_params": {"index": 5}},
            "index=5",
            {"items": [{"address": {"hash": B}}], "next_page_params": None},
        ),
        (
            "dune",
            {"result": {"rows": [{"address": A}]}, "next_uri": "/v1/segment/abc/json?offset=1"},
            "offset=1",
            {"result": {"rows": [{"address": B}]}, "next_uri": None},
        ),
    ],
)
def test_a_known_services_next_page_is_asked_for_as_it_wants(name, first, parameter, last):
    server = FaultServer()
    server.script("GET /v1/segment/abc/json", reply(first))
    server.script(f"GET /v1/segment/abc/json?{parameter}", reply(last))
    settings = Settings(arguments={"remote": {"profile": name}}, environ={})
    assert Client(server.url, KEY, settings=settings).export_json("abc")["address"].tolist() == [
        A,
        B,
    ]
    server.close()


def test_a_services_host_chooses_its_profile_unless_the_settings_do(settings):
    assert Client("https://api.dune.com", KEY, settings=settings()).profile == "dune"
    assert (
        Client("https://api.dune.com", KEY, settings=settings(remote={"profile": "none"})).profile
        == "none"
    )
    assert Client("https://api.example.com", KEY, settings=settings()).profile == "none"
    assert (
        Client("https://api.dune.com", KEY, settings=settings(), restart=lambda: None).profile
        == "none"
    )


def test_a_path_that_leads_to_nothing_names_the_line_for_that_operation(server, settings):
    server.script("POST /v1/search", reply({"treffer": [{"address": A}]}))
    remote = {"paths": {"rows": "payload.owners"}}
    with pytest.raises(ProtocolError, match=r'remote\.search\.paths\.rows = "treffer"'):
        Client(server.url, KEY, settings=settings(remote=remote)).search_nfts("ape")
    told = remote | {"search": {"paths": {"rows": "treffer"}}}
    found = Client(server.url, KEY, settings=settings(remote=told)).search_nfts("ape")
    assert found["address"].tolist() == [A]


def test_the_page_names_every_profile_and_every_setting():
    page = (Path(nbext.__file__).parent / "reference" / "remote.md").read_text("utf-8")
    rows = [line for line in page.splitlines() if line.startswith("| `")]
    named = set(re.findall(r"`([a-z_.]+)`", " ".join(line.split("|")[1] for line in rows)))
    tables = {name: TABLES[name] for name in ("paths", "states", "paging")}
    assert {*builtins(), "profile", "idempotent"} <= named
    assert {f"{table}.{name}" for table, names in tables.items() for name in names} <= named
    hosts = {host for profile in builtins().values() for host in profile.get("hosts", ())}
    assert hosts <= set(re.findall(r"[\w.-]+", page))


def test_each_setting_of_the_page_has_an_example_that_is_taken():
    page = (
        (Path(nbext.__file__).parent / "reference" / "remote.md")
        .read_text("utf-8")
        .split("## The settings")[1]
    )
    rows = [line for line in page.splitlines() if line.startswith("| `")]
    examples = re.findall(r"\| `([\w.]+ = \".*\")` \|$", "\n".join(rows), re.MULTILINE)
    assert len(examples) == len(rows) == 13
    for example in examples:
        ((name, value),) = tomllib.loads(f"[remote]\n{example}")["remote"].items()
        assert ForeignProfile({name: value}).operation == "segment"
