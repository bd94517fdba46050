"""Authorities and certificates of a test's own, as PEM files."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

DAY = timedelta(days=1)


@dataclass(frozen=True)
class Pair:
    """A certificate and its key."""

    cert: Path
    key: Path


class Authority:
    """Issues certificates into *folder*; `ca` is what whoever trusts it is given."""

    def __init__(self, folder: Path, name: str) -> None:
        self.folder, self.name = folder, _named(name)
        self._key = ec.generate_private_key(ec.SECP256R1())
        self.ca = folder / f"{name}.pem"
        own = self._builder(self.name, self._key).add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        self.ca.write_bytes(own.sign(self._key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))

    def issue(self, name: str, *, addresses: tuple[str, ...] = (), passphrase: bytes | None = None) -> Pair:
        """A certificate for *addresses*, with its key."""
        key, pair = ec.generate_private_key(ec.SECP256R1()), Pair(self.folder / f"{name}-cert.pem", self.folder / f"{name}-key.pem")
        builder = self._builder(_named(name), key)
        names = [x509.IPAddress(ipaddress.ip_address(address)) for address in addresses]
        if names:
            builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
        pair.cert.write_bytes(builder.sign(self._key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))
        locked = serialization.BestAvailableEncryption(passphrase) if passphrase else serialization.NoEncryption()
        pair.key.write_bytes(key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, locked))
        return pair

    def _builder(self, subject: x509.Name, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
        now = datetime.now(UTC)
        return (x509.CertificateBuilder().subject_name(subject).issuer_name(self.name).public_key(key.public_key())
                .serial_number(x509.random_serial_number()).not_valid_before(now - DAY).not_valid_after(now + 30 * DAY))


def _named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
