"""MariaDbSink over TLS: a certificate that is asked for is checked, host name included."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from lockstep.errors import SINK_ERRORS, SinkUnavailable
from lockstep.mariadb.connection import Database
from stack.mariadb import MISSING, MariaDbServer, mariadbd


def certificate(folder: Path, name: str, address: str) -> tuple[Path, Path]:
    """A certificate for `address` that is its own authority, and its key."""
    cert, key = folder / f"{name}.pem", folder / f"{name}.key"
    made = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", f"/CN={name}"]
    subprocess.run(
        [*made, "-addext", f"subjectAltName=IP:{address}", "-keyout", str(key), "-out", str(cert)],
        check=True,
        capture_output=True,
    )
    key.chmod(0o644)  # the server's system user reads it, and nothing depends on it
    return cert, key


@pytest.fixture(scope="module")
def certificates(memory_folder: Path) -> dict[str, tuple[Path, Path]]:
    if mariadbd() is None:
        pytest.skip(MISSING)
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed: apt-get install openssl")
    addresses = {"right": "127.0.0.1", "stranger": "127.0.0.1", "elsewhere": "127.0.0.2"}
    return {name: certificate(memory_folder, name, address) for name, address in addresses.items()}


@pytest.fixture(scope="module")
def server(memory_folder: Path, certificates: dict[str, tuple[Path, Path]]) -> Iterator[MariaDbServer]:
    with MariaDbServer(memory_folder / "tls", settings=presenting(certificates["right"])).for_a_while() as server:
        yield server


def presenting(certificate: tuple[Path, Path]) -> dict[str, str | int]:
    return {"ssl_cert": str(certificate[0]), "ssl_key": str(certificate[1])}


def cipher(dsn: str) -> str:
    database = Database("sink tls", "warehouse", dsn, 1.0, SINK_ERRORS)
    try:
        with database.transaction("asking for the cipher") as cursor:
            cursor.execute("SHOW SESSION STATUS LIKE 'Ssl_cipher'")
            [(_, name)] = cursor.fetchall()
            return str(name)
    finally:
        database.close()


def test_a_connection_is_encrypted_where_the_server_can_and_checked_where_it_is_asked_to(
    server: MariaDbServer, certificates: dict[str, tuple[Path, Path]]
) -> None:
    dsn = server.dsn()
    assert cipher(dsn) != ""
    assert cipher(f"{dsn}?ssl_disabled=true") == ""
    assert cipher(f"{dsn}?ssl_ca={certificates['right'][0]}") != ""
    with pytest.raises(SinkUnavailable, match="certificate verify failed"):
        cipher(f"{dsn}?ssl_ca={certificates['stranger'][0]}")


def test_a_certificate_of_another_host_is_refused(
    server: MariaDbServer, certificates: dict[str, tuple[Path, Path]]
) -> None:
    server.restart(presenting(certificates["elsewhere"]))
    try:
        with pytest.raises(SinkUnavailable, match="IP address mismatch"):
            cipher(f"{server.dsn()}?ssl_ca={certificates['elsewhere'][0]}")
    finally:
        server.restart(presenting(certificates["right"]))


def test_a_password_may_come_from_a_file(server: MariaDbServer, tmp_path: Path) -> None:
    login = urlsplit(server.dsn())
    options = tmp_path / "login.cnf"
    options.write_text(f"[client]\npassword={login.password}\n")
    without = f"mysql://{login.username}@127.0.0.1:{server.port}/mysql"
    with pytest.raises(SinkUnavailable, match="Access denied"):
        cipher(without)
    assert cipher(f"{without}?read_default_file={options}") != ""
