"""The eight operations against a service that answers as ours does."""

from __future__ import annotations

from decimal import Decimal

import pytest

from nbext.errors import AuthError, NotFound
from tests.client.conftest import KEY
from tests.client.faultserver import reply

WALLET = "0x" + "ab" * 20
TOKEN = {
    "chain": "ethereum",
    "chainId": 1,
    "address": WALLET,
    "name": "Not A Number",
    "symbol": "NA",
    "decimals": 18,
    "totalSupply": str(2**200),
}


def test_a_token_is_one_row_with_every_field_and_exact_digits(server, client):
    server.script(f"GET /v1/tokens/ethereum/{WALLET}", reply(TOKEN))
    table = client.tokens("ethereum", WALLET)
    assert table.loc[0, ["symbol", "decimals", "totalSupply"]].tolist() == [
        "NA",
        18,
        Decimal(2**200),
    ]
    assert [r.headers["x-api-key"] for r in server.requests] == [KEY]


@pytest.mark.parametrize(("status", "kind"), [(401, AuthError), (404, NotFound)])
def test_an_error_of_the_service_is_one_typed_error_after_one_request(server, client, status, kind):
    server.script("*", reply({"detail": f"not with {KEY}"}, status))
    with pytest.raises(kind) as caught:
        client.segment("abc")
    assert str(caught.value) == f"The service answered {status}: not with ***"
    assert len(server.requests) == 1
