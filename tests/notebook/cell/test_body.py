"""A cell's JSON: strict, exact, and kind about mistakes."""

from __future__ import annotations

import contextlib
import datetime
import json
from decimal import Decimal
from enum import Enum
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbext.client.filters import as_sent
from nbext.errors import InvalidSegment, UsageError
from nbext.notebook.cell import body
from nbext.notebook.cell.json_errors import corrected, explain
from nbext.notebook.cell.json_source import first_fault, key_places, place_of

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4)
    ),
    max_leaves=12,
)


def read(text, **names):
    return body.read_json_body(text, names).value


def refused(text, **names):
    with pytest.raises(UsageError) as caught:
        read(text, **names)
    return str(caught.value)


@given(JSON, st.sampled_from([None, 1, 3]))
def test_what_is_json_is_read_as_json(value, indent):
    text = json.dumps(value, indent=indent, ensure_ascii=False)
    assert first_fault(text) is None
    if '"{{' not in text:
        assert read(text) == value


@given(st.text(alphabet="{}[],:\"'ab01 \n\\/#.-+", max_size=30))
def test_a_text_is_read_exactly_when_the_json_module_reads_it(text):
    try:
        expected = json.loads(
            text, object_pairs_hook=lambda pairs: len(pairs) == len(dict(pairs)) and dict(pairs)
        )
    except ValueError:
        assert refused(text)
        return
    if expected is not False and "False" not in str(expected) and "{{" not in text:
        assert read(text) == json.loads(text)


@given(st.text(max_size=40))
def test_any_text_is_read_or_refused_with_a_message(text):
    with contextlib.suppress(UsageError):
        body.read_json_body(text, {})


def test_numbers_keep_their_digits():
    value = read(
        '{"a": 0.1, "b": 0.12345678901234567890123, "c": 115792089237316195423570985008687907853269984665640}'
    )
    assert value == {
        "a": 0.1,
        "b": Decimal("0.12345678901234567890123"),
        "c": 115792089237316195423570985008687907853269984665640,
    }
    assert type(value["a"]) is float


def test_a_number_of_too_many_digits_is_refused_before_they_are_written():
    # As a power of ten it would be 300 MB.
    assert refused('{"min": 1e300000000}') == "This is not JSON: a number has too many digits"


class Token(str, Enum):  # noqa: UP042  str() of a StrEnum is its value
    UNI = "UNI-V2"


def test_a_path_and_an_enum_of_texts_are_the_text_that_they_hold():
    assert read('{"a": {{one}}, "b": {{two}}}', one=Token.UNI, two=Path("x") / "y.csv") == {
        "a": "UNI-V2",
        "b": "x/y.csv",
    }
    assert read('{"wallet": {"in": {{allow}}}}', allow=Path("allow.csv")) == {
        "wallet": {"in": "@allow.csv"}
    }
    assert [type(one) for one in read("[{{one}}]", one=Token.UNI)] == [str]


def test_a_byte_order_mark_is_skipped_wherever_the_cell_begins():
    for text in ('\ufeff{"a": 1}', '\n\ufeff{"a": 1}', '\ufeff\n{"a": {{b}}}'):
        assert read(text, b=1) == {"a": 1}


# Columns that a terminal gives a text: two for a wide character, none for a mark on the letter before it.
COLUMNS = {"UNI": 3, "中文": 4, "ＵＮＩ": 6, "e\u0301": 1, "क्ष": 2, "👍": 2, "\u200b": 6}


def test_a_caret_stands_under_its_column_whatever_is_before_it():
    for text, columns in COLUMNS.items():
        cell = f'{{"token": "{text}", b}}'
        line, caret = refused(cell).splitlines()[2:4]
        assert caret == " " * (4 + len('{"token": "", ') + columns) + "^", text
        assert line.strip() == cell.replace("\u200b", "\\u200b")


MISTAKES = {
    "trailing comma": (
        '{"token": {"token": "UNI"},\n}',
        "JSON has no trailing comma. Delete the comma before }.\n"
        '  line 1, column 27:\n    {"token": {"token": "UNI"},\n                              ^\n'
        '  As JSON (--run-corrected runs it):\n    {"token": {"token": "UNI"}}',
    ),
    "comment": (
        '{\n  "token": {"token": "UNI"} // the best\n}',
        "JSON has no comments. Delete // and what follows it.\n"
        '  line 2, column 29:\n      "token": {"token": "UNI"} // the best\n'
        "                                ^\n"
        '  As JSON (--run-corrected runs it):\n    {"token": {"token": "UNI"}}',
    ),
    "single quotes": (
        "{'nft': {'nft': 'BAYC', 'flag': True}}",
        "JSON puts keys and strings in double quotes (\"), not in single quotes (').\n"
        "  line 1, column 2:\n    {'nft': {'nft': 'BAYC', 'flag': True}}\n     ^\n"
        '  As JSON (--run-corrected runs it):\n    {"nft": {"nft": "BAYC", "flag": true}}',
    ),
    "Python constant": (
        '{"wallet": {"contract": True}}',
        "True is Python. JSON uses true, false and null.\n"
        '  line 1, column 25:\n    {"wallet": {"contract": True}}\n                            ^\n'
        '  As JSON (--run-corrected runs it):\n    {"wallet": {"contract": true}}',
    ),
    "missing brace": (
        '{"token": {"token": "UNI"}',
        "} is missing at the end: the { at line 1, column 1 is not closed.\n"
        '  line 1, column 1:\n    {"token": {"token": "UNI"}\n    ^',
    ),
    "bare word": (
        '{"token": {"token": UNI}}',
        'UNI is not a JSON value. Put a string in double quotes ("UNI"), '
        "a Python variable in double braces ({{UNI}}).\n"
        '  line 1, column 21:\n    {"token": {"token": UNI}}\n                        ^',
    ),
    "key twice": (
        '{"token": {"token": "UNI"}, "token": {"token": "LINK"}}',
        "The key 'token' appears twice in one object, and only one could count. Leave one out; several conditions of "
        'one kind are a list: {"token": [..., ...]}.\n'
        '  The first: line 1, column 2:\n    {"token": {"token": "UNI"}, "token": {"token": "LINK"}}\n     ^\n'
        '  The second: line 1, column 29:\n    {"token": {"token": "UNI"}, "token": {"token": "LINK"}}\n'
        "                                ^",
    ),
    "quoted expression": (
        '{"wallet": {"in": "{{wallets}}"}}',
        "{{wallets}} is in quotes, so it would be sent as text. Remove the quotes: the Python value "
        "becomes JSON by itself.\n"
        '  line 1, column 19:\n    {"wallet": {"in": "{{wallets}}"}}\n                      ^',
    ),
    "undefined": (
        '{"wallet": {"in": {{walets}}}}',
        "'walets' is not defined in this notebook. Did you mean 'wallets'?\n"
        '  line 1, column 19:\n    {"wallet": {"in": {{walets}}}}\n                      ^',
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_named_shown_and_mended(name):
    text, expected = MISTAKES[name]
    assert refused(text, wallets=["0x1"]) == expected


@pytest.mark.parametrize(
    ("text", "first_line"),
    [
        ('{"a" 1}', "A colon (:) is missing after the key, before 1."),
        ('{"a": 1 "b": 2}', 'A comma is missing before ".'),
        ("{a: 1}", 'A key needs double quotes: "a".'),
        ('{"a": [1, 2}', "} does not close the [ at line 1, column 7. Write ]."),
        ('{"a": 1}}', "There is one } too many."),
        ('{"a": 1} {"b": 2}', "Unexpected text after the cell's object."),
        (
            '{"a": 007}',
            "A JSON number has no leading zero. Put 007 in double quotes, or drop the zero.",
        ),
        ('{"a": 1_000}', "JSON numbers have no underscores. Write the digits only."),
        ('{"a": .5}', '.5 is not a JSON number. Write 0.5, 5 or "5".'),
        ('{"a": NaN}', "JSON has no NaN. Leave the bound out."),
        ('{"a": 0xdead}', "An address is a string. Put it in double quotes."),
        ('{"a": "b\n}', 'The closing " of this string is missing on its line.'),
        ('{"a": "b c\n}', 'The closing " of this string is missing on its line.'),
        ('{"a": "\\x"}', "JSON has no escape \\x. Write \\\\ for a backslash."),
        ("{“a”: 1}", '“ is a typographic quote, as word processors write it. Use ".'),
        (
            '{"a":\u00a01}',
            "This space or invisible mark (U+00A0) is not allowed in JSON. "
            "Delete it, or use a plain space.",
        ),
        ('{"a": (1, 2)}', "JSON has no parentheses. Write a list in [ ]."),
        ('{"a": $x}', "Write a Python value as {{name}}, not as $x."),
        ('{"a":', "The text ends where a value is expected, and } is missing after it."),
        ('{"a": {{x}', "The {{ is not closed: }} is missing."),
        (
            '{"a": {{"b": 1}}}',
            "'\"b\": 1' is not a Python expression, which {{ }} needs. "
            "Write a JSON object in single braces.",
        ),
        (
            "a: &a [*a, *a]",
            'a is not a JSON value. Put a string in double quotes ("a"), '
            "a Python variable in double braces ({{a}}).",
        ),
    ],
)
def test_the_first_line_says_what_is_wrong(text, first_line):
    assert refused(text).splitlines()[0] == first_line


def test_a_cell_of_ten_megabytes_is_refused_with_line_and_column():
    message = refused("{" + " " * 10_000_000)
    assert message.startswith(
        "The cell has 10,000,001 characters; a request can have at most 1,048,576."
    )
    assert "line 1, column 1048577:" in message
    assert len(message) < 500


def test_nesting_without_end_is_refused():
    assert (
        refused('{"a":' * 50_000 + "1" + "}" * 50_000) == "Objects and lists are nested too deeply."
    )


FRAME = pd.DataFrame({"address": ["0xa", "0xb"], "n": [1, 2]})


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (["0xa"], ["0xa"]),
        (FRAME["address"], ["0xa", "0xb"]),
        (FRAME[["n"]], [1, 2]),
        (FRAME.index, [0, 1]),
        (pa.Table.from_pandas(FRAME)["address"], ["0xa", "0xb"]),
        (pa.Table.from_pandas(FRAME[["n"]]), [1, 2]),
        (pa.array([Decimal("1.5")])[0], "1.5"),
        (np.array([1, 2], dtype="uint64"), [1, 2]),
        (np.float64(0.5), 0.5),
        (np.int64(2**53), 2**53),
        (Decimal("1.000000000000000000000001"), "1.000000000000000000000001"),
        (2**256 - 1, str(2**256 - 1)),
        ({"b", "a"}, ["a", "b"]),
        (range(3), [0, 1, 2]),
        (
            datetime.datetime(2024, 1, 2, 3, tzinfo=datetime.timezone(datetime.timedelta(hours=2))),
            "2024-01-02T01:00:00Z",
        ),
        (pd.Timestamp("2024-01-02"), "2024-01-02T00:00:00Z"),
        (np.datetime64("2024-01-02T03:00:00"), "2024-01-02T03:00:00Z"),
        (np.datetime64("2024-01-02T03:00:00.000000001"), "2024-01-02T03:00:00.000000001Z"),
        (datetime.date(2024, 1, 2), "2024-01-02"),
        # As they are shown; of 64 bits they would be 0.10000000149011612 and 16777217.
        (np.float32(0.1), 0.1),
        (np.float16(0.1), 0.1),
        (np.array("2024-01-02T03:00", "datetime64[ns]"), "2024-01-02T03:00:00Z"),
        (True, True),
        (None, None),
        ('a "quoted" } text', 'a "quoted" } text'),
        ({"token": {"token": "UNI"}}, {"token": {"token": "UNI"}}),
    ],
)
def test_a_python_value_becomes_its_json_value(value, expected):
    result = read('{"a": {{x}}, "b": [ {{ x }} ]}', x=value)
    assert result == {"a": expected, "b": [expected]}
    assert type(result["a"]) is type(expected)


def test_what_can_be_read_only_once_is_a_list_also_within_one():
    assert read('{"a": {{[map(str, [1]), {"b": (n for n in [2])}]}}}') == {"a": [["1"], {"b": [2]}]}


def test_saved_segments_stay_texts_in_a_list_of_wallets():
    address = "0x" + "a" * 40
    assert read('{"in": {{x}}}', x=pd.Series(["sg_a", address])) == {"in": ["sg_a", address]}


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (float("nan"), "nan cannot be written as JSON; drop missing and infinite values first."),
        (pd.NA, "a missing value cannot be written as JSON; drop missing values first."),
        (pd.NaT, "a missing time cannot be written as JSON; drop missing values first."),
        (b"\x00", "bytes cannot be written as JSON; write an address as '0x' + value.hex()."),
        (
            FRAME,
            "a DataFrame of 2 columns (address, n) cannot be written as JSON; "
            'choose one column, such as [\'address\']. Its wallets are {"wallet": {"in": table}}.',
        ),
        (
            np.timedelta64(30, "ns"),
            "a timedelta64 cannot be written as JSON; use strings, numbers, times, lists, dicts or a column.",
        ),
        (
            object,
            "a type cannot be written as JSON; use strings, numbers, times, lists, dicts or a column.",
        ),
        ({1: 2}, "the key 1 is not a string."),
    ],
)
def test_a_value_without_a_json_form_is_refused_with_the_reason(value, reason):
    place = '\n  line 1, column 7:\n    {"a": {{x}}}\n          ^'
    assert refused('{"a": {{x}}}', x=value) == "{{x}}: " + reason + place


def test_what_contains_itself_is_refused():
    ring: list = []
    ring.append(ring)
    for cell in ('{"a": {{x}}}', '{"a": [1, {{x}}]}', "{ {{x}}: 1}"):
        assert "nested more than 64 levels deep." in refused(cell, x=ring)
    # Of wallets each is looked at when they are needed.
    with pytest.raises(InvalidSegment, match="is not an address"):
        as_sent(read('{"wallet": {"in": {{x}}}}', x=ring), lambda: True)


def test_an_expression_may_hold_braces_and_span_lines():
    assert read('{"a": {{ {"b": {"c": [7]}}["b"]["c"] }}}') == {"a": [7]}
    assert read('{"a": {{ [w\n for w in wallets\n] }},\n "b": 1}', wallets=("x",)) == {
        "a": ["x"],
        "b": 1,
    }


def test_an_expression_may_be_a_key():
    assert read('{ {{kind}}: {"token": "UNI"}}', kind="token") == {"token": {"token": "UNI"}}


def test_what_fails_says_which_error_and_where():
    assert refused('{\n "a": {{1 / 0}}}') == (
        '{{1 / 0}} failed: ZeroDivisionError: division by zero\n  line 2, column 7:\n     "a": {{1 / 0}}}\n          ^'
    )


def test_nothing_inside_a_text_is_ever_run():
    ran = []
    names = {"boom": lambda: ran.append(1)}
    assert body.read_json_body('{"nft": "Bored {{boom()}} Ape $boom {boom()}"}', names).value == {
        "nft": "Bored {{boom()}} Ape $boom {boom()}"
    }
    for text in ('{"nft": "{{boom()}}"}', "{'nft': 'Bored {{boom()}} Ape'}", '{"nft": {{boom()}}'):
        with pytest.raises(UsageError):
            body.read_json_body(text, names)
    assert ran == []


def test_a_pointer_is_found_in_the_cell():
    text = '{"token": [{"token": "UNI"},\n {"token": "A", "balance": {"min": {{x}}}}], "a/b": 1}'
    read_json_body = body.read_json_body(text, {"x": "1"})
    assert text[place_of(read_json_body.text, "/token/1/balance/min") :].startswith('"min"')
    assert text[place_of(read_json_body.text, "/token/1") :].startswith('{"token": "A"')
    assert text[place_of(read_json_body.text, "/token/0/chain") :].startswith('{"token": "UNI"}')
    assert text[place_of(read_json_body.text, "/a~1b") :].startswith('"a/b"')
    assert place_of(read_json_body.text, "/nowhere") is None


@given(st.dictionaries(st.text(max_size=4), JSON, max_size=4))
def test_every_key_and_item_has_its_place(value):
    text = json.dumps(value)

    def walk(inner, path):
        steps = (
            inner.items()
            if isinstance(inner, dict)
            else enumerate(inner)
            if isinstance(inner, list)
            else ()
        )
        for step, item in steps:
            yield (*path, step)
            yield from walk(item, (*path, step))

    assert [path for path, _ in key_places(text)] == list(walk(value, ()))
    for path, position in key_places(text):
        if isinstance(path[-1], str):
            pointer = "".join(
                "/" + str(part).replace("~", "~0").replace("/", "~1") for part in path
            )
            assert text[place_of(text, pointer) :].startswith(json.dumps(path[-1]))
            assert text[position] == '"'


# As Python would write it, or JSON with what JSON does not have; the JSON that it means; and what was corrected.
CORRECTED = [
    (
        "{'a': {'b': False, 'c': None}}",
        '{"a": {"b": false, "c": null}}',
        ["single quotes", "True, False or None"],
    ),
    ('{"a": [1, 2,],\n}', '{"a": [1, 2]\n}', ["trailing commas"]),
    ('{"a": 1} # one', '{"a": 1} ', ["comments"]),
    ('{/* two\nlines */"a": 1, // one\n}', '{\n"a": 1 \n}', ["comments", "trailing commas"]),
    ("""{'a': "it's", 'b': 'say "x"'}""", '{"a": "it\'s", "b": "say \\"x\\""}', ["single quotes"]),
    ("{'a': {{x['q']}},}", """{"a": {{x['q']}}}""", ["single quotes", "trailing commas"]),
    ("{'a': 0.12345678901234567890}", '{"a": 0.12345678901234567890}', ["single quotes"]),
    ('{"a": "# no // comment"}', '{"a": "# no // comment"}', []),
    ("{'a': (1, 2,), 'b': ()}", '{"a": [1, 2], "b": []}', ["single quotes", "tuples"]),
    (
        "{'a': {'b',}, 'c': {}} # {(",
        '{"a": ["b"], "c": {}} ',
        ["single quotes", "sets", "comments"],
    ),
    (
        '{"a": ("b"), "c": -1_000.5}',
        '{"a": "b", "c": -1000.5}',
        ["parentheses", "underscores in numbers"],
    ),
]


@pytest.mark.parametrize(("text", "meant", "faults"), CORRECTED)
def test_what_has_one_meaning_is_corrected_in_its_place(text, meant, faults):
    assert corrected(text) == (meant, faults)


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ('{"a": 1', "} is missing at the end"),
        ("{'a': 0xff}", "An address is a string"),
        ("{'a': (1 + 2, 3)}", "A comma is missing before +"),
        ("{'a': 1__000}", "1__000 is not a JSON value"),
        ("{a: 1,}", 'A key needs double quotes: "a"'),
        ("{'a': frozenset({1})}", "frozenset is not a JSON value"),
    ],
)
def test_what_could_mean_something_else_is_left_and_named(text, left):
    found, _ = corrected(text)
    assert (explain(found) or "").startswith(left)


WRITTEN = st.text("""aé'"#/(){}[],: """, max_size=5)
PYTHON = st.recursive(
    st.none() | st.booleans() | st.integers() | WRITTEN,
    lambda values: (
        st.lists(values, max_size=3)
        | st.lists(values, max_size=3).map(tuple)
        | st.dictionaries(WRITTEN, values, max_size=3)
        | st.sets(st.integers(), min_size=1, max_size=3)
    ),
    max_leaves=8,
)


def as_lists(value):
    """The value as JSON has it."""
    if isinstance(value, dict):
        return {key: as_lists(item) for key, item in value.items()}
    return [as_lists(item) for item in value] if isinstance(value, list | tuple | set) else value


@given(PYTHON)
def test_what_python_prints_of_a_dict_is_corrected_to_the_same_value(value):
    text = repr({"a": value})
    if "{{" not in text:
        assert json.loads(corrected(text)[0]) == as_lists({"a": value})


@given(JSON, st.sampled_from([None, 2]))
def test_json_is_corrected_to_itself(value, indent):
    text = json.dumps({"a": value}, indent=indent, ensure_ascii=False)
    if "{{" not in text:
        assert corrected(text) == (text, [])


EXPRESSIONS = '{"token": [{"token": {{x}}, "balance": {"min": {{y["z"]}}}}],\n "wallet": {"in": {{x}}}, {{k}}: 1}'


@pytest.mark.parametrize("removed", range(len(EXPRESSIONS)))
def test_no_message_shows_what_stands_for_an_expression_inside(removed):
    """One character is missing from the cell, whichever it is."""
    text = EXPRESSIONS[:removed] + EXPRESSIONS[removed + 1 :]
    try:
        value = read(text, x=["0x1"], y={"z": "1"}, k="activity")
    except UsageError as error:
        value = str(error)
    assert not any("\ue000" <= character <= "\uf8ff" for character in str(value)), value
    assert "\\ue" not in str(value)
