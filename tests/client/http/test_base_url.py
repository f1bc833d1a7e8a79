"""Where a redirect may lead, and how it is reported."""

from __future__ import annotations

import pytest

from nbext.errors import ProtocolError
from nbext.http.base_url import Origin


def test_a_redirect_that_is_not_followed_is_reported_without_hidden_characters():
    origin = Origin.of("https://api.example.com")
    with pytest.raises(ProtocolError) as caught:
        origin.follow("http://a\x9b31m\u202eb.example/x", origin.url)
    assert "redirects to http://a\\x9b31m\\u202eb.example, where nbext does not follow" in str(
        caught.value
    )
