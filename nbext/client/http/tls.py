"""Which certificates are trusted: those of a file that is named, else the system's own."""

from __future__ import annotations

import os
import platform
import ssl
from pathlib import Path

from nbext.core.untrusted_text import MAX_SHOWN, quoted
from nbext.errors import ConfigError

# Variables that requests, curl and OpenSSL know, in the order in which one counts.
VARIABLES = ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE", "SSL_CERT_DIR")


def context(ca_bundle: str | None) -> ssl.SSLContext:
    """Return a context that trusts ``ca_bundle``, else what the environment names, else the system's store.

    One for each connection: truststore's holds a lock through a handshake, and a handshake that hangs must not hold up
    another call.
    """
    named = [("ca_bundle", ca_bundle), *((name, os.environ.get(name)) for name in VARIABLES)]
    for source, path in named:
        if path:
            return _of_file(source, Path(path).expanduser())
    import truststore

    found = truststore.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    if not _has_store():
        import certifi

        found.load_verify_locations(certifi.where())
    return found


def _of_file(source: str, path: Path) -> ssl.SSLContext:
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    try:
        if path.is_dir():
            made.load_verify_locations(capath=str(path))
        else:
            made.load_verify_locations(cafile=str(path))
    except ssl.SSLError:
        why = "has no certificate in PEM form (-----BEGIN CERTIFICATE-----)"
    except OSError as error:
        why = f"cannot be read ({error.strerror or error})"
    else:
        return made
    named = quoted(str(path), MAX_SHOWN)
    raise ConfigError(
        f"{source}: {named} {why}. Name a file of CA certificates, or leave {source} out."
    )


def _has_store() -> bool:
    """Say whether the system has certificates; a minimal container has none, and then certifi's are taken."""
    if platform.system() in ("Windows", "Darwin"):
        return True
    paths = ssl.get_default_verify_paths()
    return bool(paths.cafile or (paths.capath and any(Path(paths.capath).iterdir())))
