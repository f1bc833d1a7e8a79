"""The client: one method per operation of the service, each of which returns a DataFrame."""

from __future__ import annotations

import uuid
from dataclasses import replace
from typing import TYPE_CHECKING

from nbext.client import frames, validate
from nbext.client.error_boundary import public
from nbext.client.http.retry import Repeat
from nbext.client.metadata_methods import MetadataMethods
from nbext.client.provenance import of_lookup
from nbext.client.remote.reading import Want, read
from nbext.client.segment_methods import SegmentMethods
from nbext.core import operations as op

if TYPE_CHECKING:
    import pandas as pd


class Client(SegmentMethods, MetadataMethods):
    """One service, by its base_url and key.

    Parameters
    ----------
    base_url
        Where the service is: http(s)://host[:port][/prefix]. http:// only to this machine, unless the
        setting ``insecure`` allows it.
    api_key
        Sent as ``x-api-key`` to that host only. It is in no repr, log, error or pickle of ours.
    settings
        Deadlines, attempts, bounds, and under ``remote`` how to read a remote's answers.
    restart
        Starts the embedded service again when it has died; none for a service that is not ours to start.

    Raises
    ------
    ConfigError
        The address or the key cannot be used. No request was sent.

    Notes
    -----
    A client may be used by many threads, and by a forked child. Ctrl-C ends a call at once, as
    `QueryCancelled`; the client stays usable. ``http.client.HTTPConnection.debuglevel = 1`` prints the key:
    it prints every header, of every program.
    """

    @public
    def sign_up(self, email: str) -> pd.DataFrame:
        """Sign an address up for the newsletter. It is never sent twice when it may have arrived.

        Returns
        -------
        pandas.DataFrame
            One row: ``email`` str, ``status`` str, ``delivered`` boolean; the latter two missing where the
            service does not say.

        Raises
        ------
        ValidationError
            Not an e-mail address.
        OutcomeUnknown
            The connection broke after the address was sent.

        Source
        ------
        POST /v1/signup/newsletter
        """
        address = validate.email_of(email)
        headers = {op.IDEMPOTENCY_HEADER: str(uuid.uuid4())}
        call = replace(self._call("POST", op.SIGN_UP, {"email": address}), headers=headers, repeat=Repeat.NEVER_TWICE)
        reading = read(self._transport.fetch(call), Want.RECEIPT, self._overrides, self._transport.key)
        told = reading.document if isinstance(reading.document, dict) else {}
        row = {"email": address, **{name: told.get(name) for name in ("status", "delivered")}}
        table = frames.frame([row], op.SIGN_UP_FIELDS)
        of_lookup(table, "sign_up", self.base_url, reading.warnings)
        return table
