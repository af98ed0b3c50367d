"""Messages by `openssl cmp`, client and mock server in one process: no network."""

import pathlib

from pki import OPENSSL, OPENSSL4, Pki, run
from vector import Vector, known

SECRET = "a secret of sufficient length"
PBM = ["-secret", f"pass:{SECRET}", "-ref", "client"]
SERVER_PBM = ["-srv_secret", f"pass:{SECRET}", "-srv_ref", "server"]
SERVER_SIGNS = ["-srv_cert", "server.crt", "-srv_key", "server.key", "-srv_untrusted", "sub.crt"]
ANSWERED = ["-srv_trusted", "root.crt", "-trusted", "root.crt", "-untrusted", "sub.crt"]
ENROLL = ["-newkey", "new.key", "-subject", "/CN=new/O=vectors", "-rsp_cert", "new.crt", "-certout", "out.pem"]


def signed(name: str) -> list[str]:
    return ["-cert", f"{name}.crt", "-key", f"{name}.key"]


class Maker:
    def __init__(self, pki: Pki, out: pathlib.Path) -> None:
        self.pki = pki
        self.out = out
        self.vectors: list[Vector] = []

    def transaction(self, name: str, program: str, options: list[str], messages: list[tuple], fails: bool = False) -> None:
        """Lets client and server talk. `messages` are those to keep, in the order of the talk:
        each (body, protection, key, popo, known), or None for one that is not kept; they are
        named after the transaction and the body."""
        requests = [self.pki.path(f"q{i}.der") for i in range((len(messages) + 1) // 2)]
        answers = [self.pki.path(f"a{i}.der") for i in range(len(messages) // 2)]
        for path in requests + answers:
            path.unlink(missing_ok=True)
        command = [program, "cmp", "-config", "", "-batch", "-use_mock_srv", *ANSWERED, *options,
                   "-reqout", " ".join(path.name for path in requests)]
        if answers:
            command += ["-rspout", " ".join(path.name for path in answers)]
        try:
            run(*command, cwd=self.pki.dir)
        except SystemExit:
            if not fails:
                raise
        maker = "openssl-4.0" if program == OPENSSL4 else "openssl-3.0"
        previous = None
        counts: dict[str, int] = {}
        for index, message in enumerate(messages):
            made = (answers if index % 2 else requests)[index // 2]
            if message is None:
                previous = None
                continue
            body, protection, key, popo, facts = message
            counts[body] = counts.get(body, 0) + 1
            suffix = f"-{counts[body]}" if counts[body] > 1 else ""
            file = f"{maker}-{name}-{index + 1}-{body}.der".lower()
            (self.out / file).write_bytes(made.read_bytes())
            facts = dict(facts)
            if previous:
                facts["follows"] = previous
            verdict = "unprotected" if key == "-" else "valid"
            self.vectors.append(Vector(file, maker, body, protection, key, verdict, popo, known(**facts)))
            previous = file


def pbm(body: str, popo: str = "-", protection: str = "PBM SHA-256 HMAC-SHA1", **facts: object) -> tuple:
    return (body, protection, f"secret:{SECRET}", popo, facts)


def by(anchor: str, protection: str, body: str, popo: str = "-", **facts: object) -> tuple:
    return (body, protection, f"anchor:{anchor}.der", popo, facts)


def make(pki: Pki, out: pathlib.Path) -> list[Vector]:
    maker = Maker(pki, out)
    talk = maker.transaction
    new = {"subject": "CN=new,O=vectors", "certReqId": 0}
    issued = {"certReqId": 0, "status": "accepted", "serial": "4711"}
    client = {"pvno": 2, "senderKID": b"client".hex()}
    server = {"pvno": 2, "senderKID": b"server".hex()}

    strong = ["-digest", "sha256", "-mac", "hmacWithSHA256"]
    protection = "PBM SHA-256 HMAC-SHA256"
    talk("ir-pbm", OPENSSL,
         ["-cmd", "ir", *PBM, *strong, *SERVER_PBM, *ENROLL, "-recipient", "/CN=Vectors Sub CA", "-rsp_capubs", "root.crt"],
         [pbm("ir", "signature", protection, recipient="CN=Vectors Sub CA", **client, **new),
          pbm("ip", caPubs=1, **server, **issued),
          pbm("certConf", protection=protection, certReqId=0, **client),
          pbm("pkiconf", **server)])
    strong = ["-digest", "sha512", "-mac", "hmacWithSHA512"]
    protection = "PBM SHA-512 HMAC-SHA512"
    talk("p10cr-pbm", OPENSSL,
         ["-cmd", "p10cr", *PBM, *strong, *SERVER_PBM, *ENROLL, "-csr", "new.csr", "-recipient", "/", "-poll_count", "1", "-check_after", "1"],
         [pbm("p10cr", protection=protection, recipient="", subject="CN=new,O=vectors", **client),
          pbm("cp", status="waiting", certReqId=-1, **server),
          pbm("pollReq", protection=protection, certReqId=-1, **client),
          pbm("cp", serial="4711", status="accepted", certReqId=-1, **server)])
    talk("cr-ecdsa", OPENSSL,
         ["-cmd", "cr", *signed("p256"), *SERVER_SIGNS, *ENROLL, "-implicit_confirm", "-grant_implicitconf"],
         [by("root", "ECDSA P-256 SHA-256", "cr", "signature", sender="CN=signer p256", implicitConfirm=1, **new),
          by("root", "ECDSA P-256 SHA-256", "cp", sender="CN=server,O=vectors", implicitConfirm=1, **issued)])
    talk("kur-ecdsa", OPENSSL,
         ["-cmd", "kur", *signed("p256"), "-newkey", "p256.key", "-certout", "out.pem", *SERVER_SIGNS, "-rsp_cert", "p256.crt"],
         [by("root", "ECDSA P-256 SHA-256", "kur", "signature", subject="CN=signer p256", certReqId=0),
          by("root", "ECDSA P-256 SHA-256", "kup", status="accepted", certReqId=0)])
    talk("rr-rsa", OPENSSL,
         ["-cmd", "rr", *signed("rsa"), *SERVER_SIGNS, "-oldcert", "new.crt", "-revreason", "1", "-rsp_cert", "new.crt"],
         [by("root", "RSA PKCS#1 SHA-256", "rr", sender="CN=signer rsa"),
          by("root", "ECDSA P-256 SHA-256", "rp", status="accepted")])
    talk("error-pbm", OPENSSL,
         ["-cmd", "genm", "-infotype", "signKeyPairTypes", *PBM, *SERVER_PBM, "-recipient", "/CN=ca", "-send_error"],
         [pbm("genm", infoTypes="1.3.6.1.5.5.7.4.2", recipient="CN=ca", **client),
          pbm("error", status="rejection", **server)], fails=True)
    talk("ir-unprotected", OPENSSL,
         ["-cmd", "ir", "-unprotected_requests", *ENROLL, *SERVER_PBM, "-secret", f"pass:{SECRET}", "-recipient", "/CN=ca", "-popo", "0",
          "-accept_unprotected", "-accept_raverified", "-send_unprotected", "-disable_confirm"],
         [("ir", "none", "-", "raVerified", {"recipient": "CN=ca", **new})], fails=True)
    for popo, number in [("keyEncipherment encrCert", "2"), ("-", "-1")]:
        talk(f"cr-popo{number}", OPENSSL,
             ["-cmd", "cr", *PBM, *ENROLL, *SERVER_PBM, "-recipient", "/CN=ca", "-popo", number],
             [pbm("cr", popo, recipient="CN=ca", **new), pbm("cp", status="rejection", failInfo="9", certReqId=0)], fails=True)
    talk("cr-rejected", OPENSSL,
         ["-cmd", "cr", *PBM, *ENROLL, *SERVER_PBM, "-recipient", "/CN=ca", "-pkistatus", "2", "-failurebits", str(1 << 17 | 1 << 26),
          "-statusstring", "a text of the CA"],
         [None, pbm("cp", status="rejection", failInfo="17,26", statusString="a text of the CA", certReqId=0)], fails=True)

    genm = ["-cmd", "genm", "-recipient", "/CN=ca", *SERVER_PBM, "-infotype", "suppLangTags"]
    facts = {"infoTypes": "1.3.6.1.5.5.7.4.16", "recipient": "CN=ca"}
    for program, name, digest, protection in [
        (OPENSSL, "rsa", "sha384", "RSA PKCS#1 SHA-384"),
        (OPENSSL, "rsa", "sha512", "RSA PKCS#1 SHA-512"),
        (OPENSSL, "p384", "sha384", "ECDSA P-384 SHA-384"),
        (OPENSSL, "p521", "sha512", "ECDSA P-521 SHA-512"),
        (OPENSSL4, "pss", "sha256", "RSA-PSS SHA-256"),
        (OPENSSL4, "ed25519", None, "Ed25519"),
        (OPENSSL4, "ed448", None, "Ed448"),
        (OPENSSL4, "mldsa44", None, "ML-DSA-44"),
        (OPENSSL4, "mldsa65", None, "ML-DSA-65"),
        (OPENSSL4, "mldsa87", None, "ML-DSA-87"),
    ]:
        choice = ["-digest", digest] if digest else []
        talk(f"genm-{name}{'-' + digest if digest else ''}", program, [*genm, *signed(name), *choice],
             [by("root", protection, "genm", sender=f"CN=signer {name}", **facts)], fails=True)

    # What OpenSSL 4 has learnt since.
    talk("certconf-hashalg", OPENSSL4,
         ["-cmd", "ir", *PBM, *strong, *SERVER_PBM, "-newkey", "new-ed25519.key", "-subject", "/CN=new-ed25519/O=vectors",
          "-certout", "out.pem", "-rsp_cert", "new-ed25519.crt", "-recipient", "/CN=ca", "-profile", "a profile",
          "-out_trusted", "root-ed25519.crt"],
         [pbm("ir", "signature", "PBM SHA-512 HMAC-SHA512", subject="CN=new-ed25519,O=vectors", generalInfo="1.3.6.1.5.5.7.4.21", **client),
          pbm("ip", status="accepted", certReqId=0),
          pbm("certConf", protection="PBM SHA-512 HMAC-SHA512", pvno=3, certReqId=0, hashAlg="2.16.840.1.101.3.4.2.3"),
          pbm("pkiconf")])
    talk("poll-any", OPENSSL4,
         [*genm, *PBM, "-poll_count", "2", "-check_after", "1"],
         [None, pbm("error", status="waiting"), pbm("pollReq", certReqId=-1), pbm("pollRep", certReqId=-1, checkAfter=1)], fails=True)
    for info, oid, options in [
        ("caCerts", 17, ["-rsp_capubs", "root.crt", "-cacertsout", "out.pem"]),
        ("rootCaCert", 20, ["-rsp_newwithnew", "root-next.crt", "-rsp_newwithold", "next-with-old.crt",
                            "-rsp_oldwithnew", "old-with-next.crt", "-oldwithold", "root.crt", "-newwithnew", "out.pem"]),
        ("certReqTemplate", 19, ["-template", "out.der", "-ref_cert", "new.crt"]),
        ("crlStatusList", 22, ["-crlcert", "root.crt", "-rsp_crl", "root.crl", "-crlout", "out.pem"]),
    ]:
        answer = {"rootCaCert": 18, "crlStatusList": 23}.get(info, oid)
        talk(f"genm-{info}", OPENSSL4,
             ["-cmd", "genm", "-infotype", info, *PBM, *SERVER_PBM, "-recipient", "/CN=ca", *options],
             [pbm("genm", infoTypes=f"1.3.6.1.5.5.7.4.{oid}", recipient="CN=ca"),
              pbm("genp", infoTypes=f"1.3.6.1.5.5.7.4.{answer}", **server)])
    talk("centralkeygen", OPENSSL4,
         ["-cmd", "cr", "-centralkeygen", "-newkeyout", "out.key", *signed("rsa"), "-subject", "/CN=new/O=vectors", "-certout", "out.pem",
          "-rsp_cert", "new.crt", "-rsp_key", "new.key", "-srv_cert", "kga.crt", "-srv_key", "kga.key", "-srv_untrusted", "sub.crt"],
         [by("root", "RSA PKCS#1 SHA-256", "cr", "-", **new),
          by("root", "RSA PKCS#1 SHA-256", "cp", privateKey="envelopedData", **issued)], fails=True)
    talk("genm-chain-mldsa44", OPENSSL4,
         [*genm, *signed("server-mldsa44")],
         [by("root-mldsa44", "ML-DSA-44", "genm", sender="CN=server-mldsa44,O=vectors", **facts)], fails=True)
    return maker.vectors
