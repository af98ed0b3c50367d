"""The throw-away PKI of the vectors. OpenSSL 4 makes it, because it can say from when to when a
certificate is valid, and knows ML-DSA."""

import os
import pathlib
import subprocess

OPENSSL = os.environ.get("OPENSSL", "openssl")
OPENSSL4 = os.environ.get("OPENSSL4", os.path.expanduser("~/.cache/abide/peers/openssl-4.0.3/bin/openssl"))

VALID = ["-not_before", "20260101000000Z", "-not_after", "20560101000000Z"]

EXTENSIONS = """
[req]
distinguished_name = name
prompt = no
[name]
[ca]
basicConstraints = critical, CA:TRUE
keyUsage = critical, keyCertSign, cRLSign
subjectKeyIdentifier = hash
[end]
keyUsage = critical, digitalSignature
subjectKeyIdentifier = hash
[kga]
keyUsage = critical, digitalSignature
extendedKeyUsage = cmKGA
subjectKeyIdentifier = hash
[encrypt]
keyUsage = critical, keyEncipherment
subjectKeyIdentifier = hash
"""

EC = ["-algorithm", "EC", "-pkeyopt"]
KINDS = {
    "p256": [*EC, "ec_paramgen_curve:P-256"],
    "p384": [*EC, "ec_paramgen_curve:P-384"],
    "p521": [*EC, "ec_paramgen_curve:P-521"],
    "rsa": ["-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048"],
    "pss": ["-algorithm", "RSA-PSS", "-pkeyopt", "rsa_keygen_bits:2048"],
    "ed25519": ["-algorithm", "ED25519"],
    "ed448": ["-algorithm", "ED448"],
    "mldsa44": ["-algorithm", "ML-DSA-44"],
    "mldsa65": ["-algorithm", "ML-DSA-65"],
    "mldsa87": ["-algorithm", "ML-DSA-87"],
}


def run(*command: object, **options: object) -> bytes:
    """Runs a program that must succeed, and returns what it prints."""
    environment = os.environ | {"OPENSSL_CONF": "/dev/null"}
    done = subprocess.run([str(word) for word in command], env=environment, capture_output=True, **options)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(map(str, command))}:\n{done.stdout.decode()}{done.stderr.decode()}")
    return done.stdout


class Pki:
    """`root` has issued a signer of every kind, named after it, and `sub`, which has issued
    `server`, `kga`, `new` (serial number 0x4711) and others. `root-mldsa44` and `root-ed25519` are roots of their own kind;
    `stranger` is a root of the same name as `root`."""

    def __init__(self, folder: pathlib.Path) -> None:
        self.dir = folder
        folder.mkdir()
        (folder / "extensions").write_text(EXTENSIONS)
        self.serial = 0x1000
        self.root("root", "p256", "/CN=Vectors Root")
        self.root("stranger", "p256", "/CN=Vectors Root")
        self.root("root-ed25519", "ed25519", "/CN=Root Ed25519")
        self.root("root-mldsa44", "mldsa44", "/CN=Root ML-DSA-44")
        for kind in KINDS:
            self.key(kind, kind)
            self.issue(kind, f"/CN=signer {kind}", "root")
        for name, profile, issuer in [
            ("sub", "ca", "root"), ("server", "end", "sub"), ("kga", "kga", "sub"),
            ("new", "end", "sub"), ("encrypt", "encrypt", "sub"),
            ("new-ed25519", "end", "root-ed25519"), ("new-mldsa44", "end", "root-mldsa44"),
            ("server-mldsa44", "end", "root-mldsa44"),
        ]:
            kind = "rsa" if name in ("encrypt", "kga") else "mldsa44" if name == "server-mldsa44" else "p256"
            self.key(name, kind)
            subject = "/CN=Vectors Sub CA" if name == "sub" else f"/CN={name}/O=vectors"
            self.issue(name, subject, issuer, profile, 0x4711 if name == "new" else None)
        # The root of the time after a key update, and what links it to the one of before.
        self.root("root-next", "p256", "/CN=Vectors Root")
        self.link("next-with-old", "root-next", "root")
        self.link("old-with-next", "root", "root-next")
        self.crl()

    def path(self, name: str) -> pathlib.Path:
        return self.dir / name

    def public(self) -> list[pathlib.Path]:
        """What a judge of the messages needs, in DER: anchors, and the key that gets a KEM's secret."""
        anchors = ("root", "stranger", "root-mldsa44")
        for name in anchors:
            run(OPENSSL4, "x509", "-in", self.path(f"{name}.crt"), "-outform", "DER", "-out", self.path(f"{name}.der"))
        key = self.path("mlkem768.key.der")
        run(OPENSSL4, "pkey", "-in", self.path("mlkem768.key"), "-outform", "DER", "-out", key)
        return [*(self.path(f"{name}.der") for name in anchors), key]

    def key(self, name: str, kind: str) -> None:
        run(OPENSSL4, "genpkey", *KINDS[kind], "-out", self.path(f"{name}.key"))

    def root(self, name: str, kind: str, subject: str) -> None:
        self.key(name, kind)
        run(OPENSSL4, "req", "-x509", "-new", "-config", self.path("extensions"), "-extensions", "ca",
            "-subj", subject, "-key", self.path(f"{name}.key"), *VALID, "-set_serial", self.next_serial(),
            "-out", self.path(f"{name}.crt"))

    def issue(self, name: str, subject: str, issuer: str, profile: str = "end", serial: int | None = None) -> None:
        request = self.path(f"{name}.csr")
        run(OPENSSL4, "req", "-new", "-config", self.path("extensions"), "-subj", subject,
            "-key", self.path(f"{name}.key"), "-out", request)
        self.sign(name, request, issuer, profile, serial)

    def link(self, name: str, subject: str, issuer: str) -> None:
        """A certificate for the key of one root by another."""
        request = self.path(f"{name}.csr")
        run(OPENSSL4, "req", "-new", "-config", self.path("extensions"), "-subj", "/CN=Vectors Root",
            "-key", self.path(f"{subject}.key"), "-out", request)
        self.sign(name, request, issuer, "ca", None)

    def sign(self, name: str, request: pathlib.Path, issuer: str, profile: str, serial: int | None) -> None:
        run(OPENSSL4, "x509", "-req", "-in", request, "-CA", self.path(f"{issuer}.crt"),
            "-CAkey", self.path(f"{issuer}.key"), "-extfile", self.path("extensions"), "-extensions", profile,
            *VALID, "-set_serial", serial or self.next_serial(), "-out", self.path(f"{name}.crt"))

    def crl(self) -> None:
        """`root.crl`, with no certificate on it."""
        self.path("index").write_text("")
        self.path("crlnumber").write_text("01\n")
        self.path("ca.cnf").write_text(
            "[ca]\ndefault_ca = c\n[c]\ndatabase = index\ncrlnumber = crlnumber\ndefault_md = sha256\n")
        run(OPENSSL4, "ca", "-config", "ca.cnf", "-gencrl", "-cert", "root.crt", "-keyfile", "root.key",
            "-crl_lastupdate", "20260101000000Z", "-crl_nextupdate", "20560101000000Z", "-out", "root.crl",
            cwd=self.dir)

    def next_serial(self) -> int:
        self.serial += 1
        return self.serial
