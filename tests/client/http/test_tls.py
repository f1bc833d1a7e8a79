"""A certificate that nobody vouches for is refused, and trusted only where its file is named."""

from __future__ import annotations

import http.server
import json
import shutil
import ssl
import subprocess
import threading

import pytest

from nbext.client import Client
from nbext.errors import TLSError
from nbext.settings import Settings


class Answering(http.server.BaseHTTPRequestHandler):
    """Answers every GET with one token, and notes that it was asked."""

    asked: list[str] = []  # noqa: RUF012  shared by the handlers of one server on purpose

    def do_GET(self) -> None:
        self.asked.append(self.path)
        body = json.dumps({"chain": "ethereum", "symbol": "USDC", "decimals": 6}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: object) -> None:
        """Keep the tests' output clean."""


@pytest.fixture
def certificate(tmp_path):
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not on this machine to make a certificate with")
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    subprocess.run(
        [
            "openssl",
            "req",
            "-x509",
            "-newkey",
            "rsa:2048",
            "-nodes",
            "-days",
            "2",
            "-subj",
            "/CN=localhost",
            "-addext",
            "subjectAltName=IP:127.0.0.1",
            "-keyout",
            str(key),
            "-out",
            str(certificate),
        ],
        check=True,
        capture_output=True,
    )
    return certificate, key


@pytest.fixture
def secure(certificate):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate)
    Answering.asked.clear()

    class Quiet(http.server.ThreadingHTTPServer):
        def handle_error(self, request: object, client_address: object) -> None:
            """A client that refuses the certificate hangs up; that is what is tested."""

    with Quiet(("127.0.0.1", 0), Answering) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(
            target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True
        )
        thread.start()
        yield f"https://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()


USDC = "0xa0b86991c6218b36c1d19d4a2e9eb0ce3606eb48"


def test_a_self_signed_certificate_is_refused_before_the_key_is_sent(secure):
    with pytest.raises(TLSError) as caught:
        Client(secure, "s3cr3t-key").tokens("ethereum", USDC)
    assert Answering.asked == []
    assert "s3cr3t" not in str(caught.value)


def test_it_is_trusted_where_its_file_is_the_setting(secure, certificate):
    client = Client(
        secure, "s3cr3t-key", settings=Settings(arguments={"ca_bundle": str(certificate[0])})
    )
    assert client.tokens("ethereum", USDC)["symbol"].tolist() == ["USDC"]
    client.close()
