"""Sign-ups: the verdict is email-validator's, the length comes first, and nobody can tell who was there."""

from __future__ import annotations

import pytest
from email_validator import EmailNotValidError, validate_email

ADDRESSES = [
    "a@b",
    "a@b.co",
    "A.b+c@Example.org",
    "",
    " ",
    "a",
    "@b.co",
    "a@",
    "a@b..co",
    "a b@c.co",
    "a@b.co\r\nBcc: x@y.co",
    "a@b.co,c@d.co",
    "Ann <a@b.co>",
    "a@[127.0.0.1]",
    "a@127.0.0.1",
    "a@localhost",
    '"a b"@c.co',
    ".a@b.co",
    "a.@b.co",
    "a..b@c.co",
    "a@-b.co",
    "a@b.c_d",
    "a\u200b@b.co",
    "ä@b.co",
    "a@ä.co",
    "a@b.co\x00",
    "a@b.invalid",
    "a@b.test",
    "a@xn--80ak6aa92e.com",
    "a@b.co.",
    "x" * 64 + "@b.co",
    "x" * 65 + "@b.co",
]


@pytest.mark.parametrize("address", ADDRESSES)
def test_an_address_is_taken_where_email_validator_takes_it(service, address):
    try:
        kept = validate_email(address, check_deliverability=False).normalized
    except EmailNotValidError:
        kept = None
    answer = service.post("/v1/signup/newsletter", {"email": address})
    if kept is None:
        assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (422, "/email")
    else:
        assert (answer.status_code, answer.json()["email"]) == (202, kept)


def test_a_long_address_is_refused_before_it_is_parsed(service):
    answer = service.post("/v1/signup/newsletter", {"email": "a@b." * 250_000})
    assert answer.json()["errors"] == [
        {
            "pointer": "/email",
            "code": "length",
            "detail": "An e-mail address has at most 254 characters; this one has 1,000,000.",
        }
    ]


@pytest.mark.parametrize(
    ("body", "pointer", "code"),
    [
        ({}, "/email", "required"),
        ({"email": None}, "/email", "type"),
        ({"email": ["a@b.co"]}, "/email", "type"),
        ({"email": "a@b.co", "emial": "x"}, "/emial", "unknown-key"),
    ],
)
def test_a_sign_up_that_is_not_allowed_names_the_field(service, body, pointer, code):
    answer = service.post("/v1/signup/newsletter", body)
    assert answer.status_code == 422
    assert [(each["pointer"], each["code"]) for each in answer.json()["errors"]] == [
        (pointer, code)
    ]


def test_a_repeat_looks_the_same_and_keeps_the_first_consent(service):
    first = service.post("/v1/signup/newsletter", {"email": "twice@example.com"})
    kept = {each.email: each.consented_at for each in service.container.signups.all()}
    again = service.post("/v1/signup/newsletter", {"email": "TWICE@example.com".lower()})
    assert (first.status_code, first.json()) == (again.status_code, again.json())
    assert {each.email: each.consented_at for each in service.container.signups.all()} == kept


def test_a_key_records_so_many_addresses_a_day_and_learns_of_none(service, monkeypatch):
    monkeypatch.setattr("nbext.service.accounts.signups._MOST", 2)
    add = service.container.keys.add
    ada, bob = ({"x-api-key": add(name)[1].reveal()} for name in ("ada", "bob"))

    def asked(number, key):
        body = {"email": f"reader{number}@example.org"}
        answer = service.post("/v1/signup/newsletter", body, headers=key)
        return answer.status_code, answer.json().get("code")

    assert [asked(number, ada) for number in (1, 1, 2)] == [(202, None)] * 3
    # One that is there and one that is not look the same.
    assert [asked(number, ada) for number in (1, 3)] == [(507, "quota")] * 2
    assert asked(3, bob) == (202, None)
