import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbext.core.addresses import checksummed, looks_like_address, normalised
from nbext.errors import ValidationError

# The examples that EIP-55 itself lists.
EIP55 = [
    "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed",
    "0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359",
    "0xdbF03B407c01E7cD3CBea99509d93f8DDDC8C6FB",
    "0xD1220A0cf47c7B9Be7A2E6BA89F429762e7b9aDb",
    "0x52908400098527886E0F7030069857D2E4169EE7",
    "0xde709f2102306220921060314715629080e2fb77",
]


@pytest.mark.parametrize("address", EIP55)
def test_the_checksum_is_the_one_of_eip_55(address):
    assert checksummed(address.lower()) == address
    assert normalised(address) == address.lower()


@given(st.binary(min_size=20, max_size=20))
def test_any_case_of_one_address_is_the_same_address(raw):
    address = "0x" + raw.hex()
    assert {normalised(a) for a in (address, "0x" + raw.hex().upper(), checksummed(address))} == {
        address
    }


@pytest.mark.parametrize(
    "bad",
    [
        "",
        "0x",
        "0x" + "a" * 39,
        "0x" + "a" * 41,
        "a" * 40,
        "0X" + "a" * 40,
        "0x" + "g" * 40,
        "0x" + "a" * 40 + "\n",
        " 0x" + "a" * 40,
        "0x" + "١" * 40,
        "vitalik.eth",
        "x" * 10_000,
        None,
        7,
        b"0x",
    ],
)
def test_what_is_not_an_address_is_refused_with_the_form_that_is_allowed(bad):
    with pytest.raises(ValidationError) as caught:
        normalised(bad, "/address")
    (error,) = caught.value.errors
    assert (error["pointer"], error["code"]) == ("/address", "address")
    # Forty hex digits with another prefix are mended; of all else only the form can be said.
    mended = bad in ("a" * 40, "0X" + "a" * 40)
    allowed = f"Write 0x{bad[-40:]}." if mended else "An address is 0x and 40 hex digits."
    if bad == "vitalik.eth":
        allowed = "nbext does not resolve names; give the 0x... address."
    assert error["detail"].endswith(allowed)
    assert len(error["detail"]) < 200


def test_a_mistyped_letter_is_found_by_its_checksum_and_the_right_spelling_is_shown():
    slip = EIP55[0][:-1] + "D"
    with pytest.raises(ValidationError) as caught:
        normalised(slip)
    assert caught.value.errors == [
        {
            "pointer": "address",
            "code": "checksum",
            "detail": f"The checksum of {slip} does not match: a letter may be mistyped. "
            f"If the digits are right, write {EIP55[0]}.",
        }
    ]


@given(st.text())
def test_only_forty_hex_digits_look_like_an_address(text):
    assert looks_like_address(text) == (
        len(text) == 42
        and text[:2] == "0x"
        and all(c in "0123456789abcdefABCDEF" for c in text[2:])
    )
