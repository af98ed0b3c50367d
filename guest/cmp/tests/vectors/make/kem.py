"""Messages under the KEM-based MAC of RFC 9810, 5.1.3.4, which neither peer makes. Encapsulation,
HKDF and HMAC are OpenSSL's; the octets are put together here after the productions of the RFC."""

import hashlib
import pathlib

from pki import OPENSSL4, Pki, run
from vector import Vector, known

HASHES = {"SHA256": ("1.2.840.113549.1.9.16.3.28", "1.2.840.113549.2.9"),
          "SHA384": ("1.2.840.113549.1.9.16.3.29", "1.2.840.113549.2.10"),
          "SHA512": ("1.2.840.113549.1.9.16.3.30", "1.2.840.113549.2.11")}
ML_KEM = {"512": "2.16.840.1.101.3.4.4.1", "768": "2.16.840.1.101.3.4.4.2", "1024": "2.16.840.1.101.3.4.4.3"}
KEM_BASED_MAC = "1.2.840.113533.7.66.16"
KEM_CIPHERTEXT_INFO = "1.3.6.1.5.5.7.4.24"


def tlv(tag: int, *contents: bytes) -> bytes:
    value = b"".join(contents)
    length = len(value)
    if length < 0x80:
        return bytes([tag, length]) + value
    octets = length.to_bytes((length.bit_length() + 7) // 8, "big")
    return bytes([tag, 0x80 | len(octets)]) + octets + value


def sequence(*contents: bytes) -> bytes:
    return tlv(0x30, *contents)


def explicit(number: int, content: bytes) -> bytes:
    return tlv(0xA0 | number, content)


def integer(value: int) -> bytes:
    return tlv(0x02, value.to_bytes(value.bit_length() // 8 + 1, "big"))


def octets(value: bytes) -> bytes:
    return tlv(0x04, value)


def oid(text: str) -> bytes:
    first, second, *rest = (int(arc) for arc in text.split("."))
    out = b""
    for arc in [first * 40 + second, *rest]:
        groups = [arc & 0x7F]
        while arc := arc >> 7:
            groups.append(0x80 | arc & 0x7F)
        out += bytes(reversed(groups))
    return tlv(0x06, out)


def directory_name(common_name: str) -> bytes:
    attribute = sequence(oid("2.5.4.3"), tlv(0x0C, common_name.encode()))
    return explicit(4, sequence(tlv(0x31, attribute)))


def header(sender: str, transaction: bytes, algorithm: bytes | None) -> bytes:
    return sequence(
        integer(3), directory_name(sender), directory_name("recipient"),
        explicit(1, algorithm) if algorithm else b"",
        explicit(2, octets(sender.encode())), explicit(4, octets(transaction)), explicit(5, octets(b"a nonce of 16 oc")))


def ciphertext_message(transaction: bytes, size: str, ciphertext: bytes) -> bytes:
    """Bob's genp with KemCiphertextInfo (5.3.19.18)."""
    info = sequence(oid(KEM_CIPHERTEXT_INFO), sequence(sequence(oid(ML_KEM[size])), octets(ciphertext)))
    return sequence(header("bob", transaction, None), explicit(22, sequence(info)))


def protected_message(transaction: bytes, shared: bytes, kdf_hash: str, mac_hash: str, length: int,
                      context: bytes | None) -> bytes:
    """Alice's pkiConf under the MAC."""
    kem_context = explicit(0, octets(context)) if context else b""
    parameters = sequence(sequence(oid(HASHES[kdf_hash][0])), kem_context, integer(length), sequence(oid(HASHES[mac_hash][1])))
    other_info = sequence(sequence(tlv(0x0C, b"CMP-KEM")), octets(transaction), kem_context)
    key = run(OPENSSL4, "kdf", "-binary", "-keylen", length, "-kdfopt", f"digest:{kdf_hash}", "-kdfopt", f"hexkey:{shared.hex()}",
              "-kdfopt", f"hexinfo:{other_info.hex()}", "HKDF")
    assert len(key) == length
    parts = [header("alice", transaction, sequence(oid(KEM_BASED_MAC), parameters)), explicit(19, b"\x05\x00")]
    mac = run(OPENSSL4, "mac", "-binary", "-digest", mac_hash, "-macopt", f"hexkey:{key.hex()}", "HMAC", input=sequence(*parts))
    return sequence(*parts, explicit(0, tlv(0x03, b"\0" + mac)))


def make(pki: Pki, out: pathlib.Path) -> list[Vector]:
    vectors = []
    for size, kdf_hash, mac_hash, length, context in [
        ("512", "SHA256", "SHA256", 32, None),
        ("768", "SHA384", "SHA256", 32, b"context"),
        ("1024", "SHA256", "SHA512", 64, None),
    ]:
        key, public = pki.path(f"mlkem{size}.key"), pki.path(f"mlkem{size}.pub")
        # Without chance: the same key, ciphertext and secret in every run.
        run(OPENSSL4, "genpkey", "-algorithm", f"ML-KEM-{size}", "-pkeyopt", f"hexseed:{'5e' * 64}", "-out", key)
        run(OPENSSL4, "pkey", "-in", key, "-pubout", "-out", public)
        run(OPENSSL4, "pkeyutl", "-encap", "-pkeyopt", f"hexikme:{'c0' * 32}", "-pubin", "-inkey", public, "-out", pki.path("ct"), "-secret", pki.path("ss"))
        shared, ciphertext = pki.path("ss").read_bytes(), pki.path("ct").read_bytes()
        run(OPENSSL4, "pkeyutl", "-decap", "-inkey", key, "-in", pki.path("ct"), "-secret", pki.path("ss"))
        assert pki.path("ss").read_bytes() == shared, "decapsulation gives another secret"

        transaction = f"kem transact{size:>4}".encode()
        facts = {"pvno": 3, "transactionID": transaction.hex(), "recipient": "CN=recipient", "senderNonce": b"a nonce of 16 oc".hex()}
        question = f"script-kem-mlkem{size}-1-genp.der"
        (out / question).write_bytes(ciphertext_message(transaction, size, ciphertext))
        vectors.append(Vector(question, "script", "genp", "none", "-", "unprotected", "-",
                              known(sender="CN=bob", infoTypes=KEM_CIPHERTEXT_INFO, kemCiphertextSha256=hashlib.sha256(ciphertext).hexdigest(), **facts)))
        answer = f"script-kem-mlkem{size}-2-pkiconf.der"
        (out / answer).write_bytes(protected_message(transaction, shared, kdf_hash, mac_hash, length, context))
        protection = f"KEM ML-KEM-{size} HKDF-{kdf_hash} HMAC-{mac_hash}".replace("SHA", "SHA-")
        vectors.append(Vector(answer, "script", "pkiconf", protection, f"kem:{shared.hex()}", "valid", "-",
                              known(sender="CN=alice", **facts)))
    return vectors
