"""Networks that people have: proxies, certificates of a company's own, and bodies in other charsets."""

from __future__ import annotations

import contextlib
import gzip
import re
import shutil
import socket
import ssl
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from nbext import Client
from nbext.errors import (
    AuthError,
    ConfigError,
    ConnectionFailed,
    ProtocolError,
    ResponseTooLarge,
    TLSError,
)
from tests.client.conftest import KEY
from tests.client.faultserver import FaultServer, reply

HOST = "api.example.test"
ADDRESS = "0x" + "ab" * 20
TOKEN = {"address": ADDRESS, "symbol": "NA", "decimals": 18}


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch):
    for name in (
        "REQUESTS_CA_BUNDLE",
        "CURL_CA_BUNDLE",
        "SSL_CERT_FILE",
        "SSL_CERT_DIR",
        "NO_PROXY",
        "no_proxy",
    ):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def ask(settings):
    """Ask the service of a base_url for one token."""

    def asked(base_url=f"https://{HOST}", **more):
        with contextlib.closing(
            Client(base_url, KEY, settings=settings(attempts=1, **more))
        ) as client:
            return client.tokens("ethereum", ADDRESS)["symbol"].tolist()

    return asked


# ------------------------------------------------------------------ proxies that refuse


@pytest.mark.parametrize(
    ("refusal", "said"),
    [
        (
            407,
            "The proxy {0} wants a user name and a password. Write them into the variable that names it: "
            "http://USER:PASSWORD@{1}",
        ),
        (
            403,
            "The proxy {0} refused to connect to https://api.example.test (403). Ask who runs it to allow that host, "
            "or name it in NO_PROXY to go there directly.",
        ),
    ],
)
def test_a_tunnel_that_a_proxy_refuses_is_the_proxys_error(server, ask, monkeypatch, refusal, said):
    server.script(f"CONNECT {HOST}:443", reply(b"", refusal, None))
    host = server.url.removeprefix("http://")
    for user in ("", "me:hidden@"):
        monkeypatch.setenv("HTTPS_PROXY", f"http://{user}{host}")
        with pytest.raises(ConnectionFailed) as caught:
            ask()
        assert str(caught.value) == said.format(server.url, host)
    assert [KEY in str(request) for request in server.requests] == [False, False]


@pytest.mark.parametrize("scheme", ["http", "socks5h"])
def test_a_proxy_that_is_not_there_is_named(ask, monkeypatch, scheme):
    with socket.create_server(("127.0.0.1", 0)) as free:
        proxy = f"{scheme}://127.0.0.1:{free.getsockname()[1]}"
    monkeypatch.setenv("HTTPS_PROXY", proxy)
    with pytest.raises(ConnectionFailed) as caught:
        ask()
    assert str(caught.value) in (
        f"The proxy {proxy} refused the connection. Is it running there?",
        f"There is no connection to https://{HOST} through the proxy {proxy}.",
    )


def test_a_proxy_without_a_host_or_of_unknown_name_is_named(ask, monkeypatch):
    monkeypatch.setenv("HTTPS_PROXY", "http://")
    with pytest.raises(
        ConfigError, match=r"The proxy http:// has no host\. Write one such as http://proxy"
    ):
        ask()
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy.invalid:3128")
    with pytest.raises(
        ConnectionFailed,
        match=r"The proxy http://proxy\.invalid:3128: there is no host of that name",
    ):
        ask()


def test_without_tls_a_proxys_own_answers_are_told_from_the_services(server, ask, monkeypatch):
    monkeypatch.setenv("HTTP_PROXY", server.url)
    server.script("*", reply({"detail": "no"}, 407))
    with pytest.raises(ConnectionFailed, match=r"The proxy .* wants a user name and a password"):
        ask(f"http://{HOST}", insecure=True)
    server.script("*", reply({"detail": "no"}, 403))
    with pytest.raises(AuthError) as caught:
        ask(f"http://{HOST}", insecure=True)
    assert str(caught.value) == (
        f"The service answered 403: no. It came through the proxy {server.url}, which may have refused it."
    )


def test_socks_without_its_package_says_what_to_install(tmp_path, server):
    (tmp_path / "socks.py").write_text("raise ImportError")
    code = (
        "from nbext import Client\n"
        f"try: Client('https://{HOST}', 'key').tokens('ethereum', '{ADDRESS}')\n"
        "except Exception as error: print(type(error).__name__, error)"
    )
    found = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n{code}"],
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
        env={**__import__("os").environ, "HTTPS_PROXY": "socks5://u:p@127.0.0.1:1080"},
    )
    assert found.stdout == (
        "ConfigError The proxy socks5://127.0.0.1:1080 needs a package that is not installed: "
        'pip install "nbext[socks]"\n'
    )


# ------------------------------------------------------------------ certificates, and proxies that connect


def openssl(*words):
    subprocess.run(["openssl", *map(str, words)], check=True, capture_output=True)


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    """A folder with a company's own CA (ca.pem) and a certificate of the host that it signed (host.pem, host.key)."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not on this machine to make certificates with")
    folder = tmp_path_factory.mktemp("ca")
    new = ("req", "-newkey", "rsa:2048", "-nodes")
    openssl(
        *new,
        "-x509",
        "-days",
        2,
        "-subj",
        "/CN=Own CA",
        "-addext",
        "basicConstraints=critical,CA:TRUE",
        "-keyout",
        folder / "ca.key",
        "-out",
        folder / "ca.pem",
    )
    openssl(
        *new,
        "-subj",
        f"/CN={HOST}",
        "-addext",
        f"subjectAltName=DNS:{HOST}",
        "-keyout",
        folder / "host.key",
        "-out",
        folder / "host.csr",
    )
    openssl(
        "x509",
        "-req",
        "-in",
        folder / "host.csr",
        "-CA",
        folder / "ca.pem",
        "-CAkey",
        folder / "ca.key",
        "-days",
        2,
        "-copy_extensions",
        "copy",
        "-out",
        folder / "host.pem",
    )
    (folder / "certs").mkdir()
    shutil.copy(folder / "ca.pem", folder / "certs")
    openssl("rehash", folder / "certs")
    return folder


class Tunnel:
    """A proxy, for CONNECT and for SOCKS5, that connects everything to one TLS server, and notes what passes it."""

    def __init__(self, folder):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(folder / "host.pem", folder / "host.key")
        self.folder, self.context, self.asked, self.passed = folder, context, [], b""
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self.listener.getsockname()[1]}"
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        with contextlib.suppress(OSError):
            while True:
                sock = self.listener.accept()[0]
                threading.Thread(target=self.serve, args=(sock,), daemon=True).start()

    def serve(self, sock):
        # A client that does not trust the certificate hangs up: that is what is tested.
        with contextlib.suppress(OSError), sock:
            first = sock.recv(4096)
            self.passed += first
            if first[:1] == b"\x05":
                sock.sendall(b"\x05\x00")
                asked = sock.recv(4096)
                sock.sendall(b"\x05\x00\x00\x01" + b"\0" * 6)
                self.passed += asked
                self.asked.append(asked[5 : 5 + asked[4]].decode())
            else:
                sock.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
                self.asked.append(first.split()[1].decode())
            with self.context.wrap_socket(sock, server_side=True) as secure:
                request = secure.recv(65536).decode()
                assert f"x-api-key: {KEY}" in request
                secure.sendall(reply(TOKEN, Connection="close"))


@pytest.fixture
def tunnel(authority):
    found = Tunnel(authority)
    yield found
    found.listener.close()


@pytest.mark.parametrize(
    ("source", "file"),
    [
        ("ca_bundle", "ca.pem"),
        ("REQUESTS_CA_BUNDLE", "ca.pem"),
        ("CURL_CA_BUNDLE", "ca.pem"),
        ("SSL_CERT_FILE", "ca.pem"),
        ("SSL_CERT_DIR", "certs"),
        ("ca_bundle", "certs"),
    ],
)
def test_a_companys_own_ca_is_trusted_where_it_is_named_also_through_a_proxy(
    tunnel, ask, monkeypatch, source, file
):
    path = str(tunnel.folder / file)
    if source != "ca_bundle":
        monkeypatch.setenv(source, path)
    for scheme in ("http", "socks5h"):
        monkeypatch.setenv("HTTPS_PROXY", f"{scheme}://{tunnel.address}")
        assert ask(**({"ca_bundle": path} if source == "ca_bundle" else {})) == ["NA"]
    assert tunnel.asked == [f"{HOST}:443", HOST]
    assert KEY.encode() not in tunnel.passed


def test_a_companys_own_ca_in_the_systems_store_is_trusted(tunnel, authority, ask, monkeypatch):
    """The store of this process alone: OpenSSL is told where the system has it."""
    paths = ssl.get_default_verify_paths()._replace(cafile=str(authority / "ca.pem"))
    monkeypatch.setattr(ssl, "get_default_verify_paths", lambda: paths)
    monkeypatch.setattr(
        ssl.SSLContext,
        "set_default_verify_paths",
        lambda self: self.load_verify_locations(paths.cafile),
    )
    monkeypatch.setenv("HTTPS_PROXY", f"http://{tunnel.address}")
    assert ask() == ["NA"]


def test_a_certificate_that_nobody_vouches_for_may_be_the_proxys(tunnel, ask, monkeypatch):
    monkeypatch.setenv("HTTPS_PROXY", f"http://{tunnel.address}")
    with pytest.raises(TLSError) as caught:
        ask()
    said = (
        f"It came through the proxy http://{tunnel.address}, which may have put its own in place."
    )
    assert said in str(caught.value)


def test_without_any_store_of_the_systems_certifis_is_taken(monkeypatch, tmp_path):
    from nbext.http.connections import tls_context

    nothing = ssl.get_default_verify_paths()._replace(cafile=None, capath=str(tmp_path))
    monkeypatch.setattr(ssl, "get_default_verify_paths", lambda: nothing)
    monkeypatch.setattr("truststore._openssl._CA_FILE_CANDIDATES", [])
    assert tls_context(None)._ctx.cert_store_stats()["x509_ca"] > 50


@pytest.mark.parametrize("source", ["ca_bundle", "REQUESTS_CA_BUNDLE", "SSL_CERT_FILE"])
def test_a_bundle_that_cannot_be_used_is_refused_before_any_request(
    ask, monkeypatch, tmp_path, source
):
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:9")
    junk = tmp_path / "junk.pem"
    junk.write_text("junk")
    for path, why in (
        (tmp_path / "none.pem", "cannot be read (No such file or directory)"),
        (junk, "has no certificate in PEM form (-----BEGIN CERTIFICATE-----)"),
    ):
        if source != "ca_bundle":
            monkeypatch.setenv(source, str(path))
        with pytest.raises(ConfigError) as caught:
            ask(**({"ca_bundle": str(path)} if source == "ca_bundle" else {}))
        assert str(caught.value) == (
            f"{source}: {str(path)!r} {why}. Name a file of CA certificates, or leave {source} out."
        )


# ------------------------------------------------------------------ addresses, charsets, sizes


@pytest.mark.parametrize("ending", ["/v1", "/v1/", "/team/v1"])
def test_a_base_url_may_end_in_v1(server, ask, ending):
    server.script("*", reply(TOKEN))
    assert ask(server.url + ending) == ["NA"]
    assert (
        server.requests[0].path
        == f"{ending.rstrip('/').removesuffix('/v1')}/v1/tokens/ethereum/{ADDRESS}"
    )


@pytest.mark.parametrize(
    "content_type", ["text/html", "text/html; charset=utf-8", "application/xhtml+xml"]
)
def test_json_that_is_served_as_html_is_json(server, ask, content_type):
    server.script("*", reply(TOKEN, content_type=content_type))
    assert ask(server.url) == ["NA"]


@pytest.mark.parametrize(
    ("charset", "encoding"),
    [
        ("utf-16", "utf-16"),
        ("UTF-16LE", "utf-16-le"),
        ("iso-8859-1", "latin-1"),
        ("latin1", "latin-1"),
        ("ISO-8859-1", "utf-8"),
        ("windows-1252", "cp1252"),
        ("gb18030", "gb18030"),
        ('"utf-8"', "utf-8"),
    ],
)
def test_a_body_is_read_in_the_charset_that_it_declares(server, client, charset, encoding):
    rows = [{"address": ADDRESS, "name": "Café" * 40_000}]
    name = "Café" * 40_000
    json_body = f'{{"data": [{{"address": "{ADDRESS}", "name": "{name}"}}]}}'.encode(encoding)
    csv_body = f"address,name\n{ADDRESS},{name}\n".encode(encoding)
    server.script(
        "GET /v1/segment/abc/json",
        reply(json_body, content_type=f"application/json; charset={charset}"),
    )
    server.script(
        "GET /v1/segment/abc/csv", reply(csv_body, content_type=f"text/csv; charset={charset}")
    )
    for table in (client.export_json("abc"), client.export_csv("abc")):
        assert table.to_dict("records") == rows


def test_a_file_gets_utf8_whatever_charset_came(server, client, tmp_path):
    body = f"address,name\n{ADDRESS},Café\n".encode("utf-16")
    server.script("GET /v1/segment/abc/csv", reply(body, content_type="text/csv; charset=utf-16"))
    for raw in (True, False):
        client.export_csv("abc", to=tmp_path / "rows.csv", overwrite=True, raw=raw)
        assert (tmp_path / "rows.csv").read_text("utf-8").replace(
            '"', ""
        ) == f"address,name\n{ADDRESS},Café\n"


@pytest.mark.parametrize(
    "charset", ["utf-16", "ascii", "rot13", "idna", "no-such", "unicode_escape"]
)
def test_a_body_that_is_not_text_of_its_charset_is_an_error_and_never_other_letters(
    server, client, charset
):
    server.script(
        "*",
        reply(b'[{"name": "\\u00e9\xff"}]', content_type=f"application/json; charset={charset}"),
    )
    with pytest.raises(ProtocolError):
        client.export_json("abc")


def packed_csv(megabytes):
    piece = (f"{ADDRESS},7\n" * 25_000).encode()
    body = gzip.compress(b"address,n\n" + piece * (megabytes * 1_000_000 // len(piece) + 1), 1)
    return reply(body, content_type="text/csv", Content_Encoding="gzip")


@contextlib.contextmanager
def most_memory():
    """Yield a list of this process' bytes, at first and at most until now: of memory, not of a file's pages."""

    def bytes_now():
        (line,) = re.findall(r"RssAnon:\s+(\d+) kB", Path("/proc/self/status").read_text())
        return int(line) * 1024

    seen, ended = [bytes_now()] * 2, threading.Event()

    def look():
        while not ended.wait(0.002):
            seen[1] = max(seen[1], bytes_now())

    looking = threading.Thread(target=look)
    looking.start()
    try:
        yield seen
    finally:
        ended.set()
        looking.join()


def test_a_packed_csv_is_counted_unpacked_and_streams_to_a_file_of_any_size(
    server, settings, tmp_path
):
    held = Client(server.url, KEY, settings=settings(max_body_mb=4))
    server.script("GET /v1/segment/abc/csv", packed_csv(40))
    with pytest.raises(
        ResponseTooLarge, match=r"larger than 4 MB\. Raise the setting max_body_mb, or export"
    ):
        held.export_csv("abc")
    # A page is read into a file, whose pages are no memory that is held; the first export loads what any needs.
    for megabytes in (1, 120):
        server.script("GET /v1/segment/abc/csv", packed_csv(megabytes))
        path, size = tmp_path / f"{megabytes}.csv", megabytes * 1_000_000
        with most_memory() as held_bytes:
            written = held.export_csv("abc", to=path, raw=True)
        assert path.stat().st_size > size
        assert written["rows"].tolist() == [(size // (25_000 * 45) + 1) * 25_000]
    first, most = held_bytes
    # Arrow keeps some pieces on their way; all of them are twice as much.
    assert most - first < size


def test_another_host_of_a_proxy_never_sees_the_key(server, ask, monkeypatch):
    other = FaultServer()
    monkeypatch.setenv("HTTP_PROXY", server.url)
    server.script("*", reply(b"", 302, None, Location=f"{other.url}/x"))
    with pytest.raises(ProtocolError, match="where nbext does not follow"):
        ask(f"http://{HOST}", insecure=True)
    assert other.requests == []
    other.close()
