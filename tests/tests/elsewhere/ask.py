"""Asks the component all that the Rust test asks, and prints one line of JSON for each answer.

    PYTHONPATH=examples/python python ask.py abide-gate.wasm QUESTIONS.json
"""

import json
import sys

from inspect_message import Gate, Refused, plain
from wasmtime.component import Record, Variant


def record(**fields):
    made = Record()
    vars(made).update(fields)
    return made


def ask(gate, name, *arguments):
    try:
        return {"ok": gate(name, *arguments)}
    except Refused as refused:
        return {"err": refused.args[0]}


def read(gate, message, trusts, leniency):
    options = record(**{"leniency": leniency, "allow-sha1": bool(leniency)})
    return {
        "decode": ask(gate, "decode", message, leniency),
        "describe": ask(gate, "describe", message, leniency),
        "check": ask(gate, "check", message, leniency),
        "verify": [ask(gate, "verify", message, trust, options) for trust in trusts],
    }


def taken_apart(gate, message, secret):
    split = ask(gate, "split", message, set())
    if "err" in split:
        return {"split": split}
    parts = split["ok"]
    covered = gate("protected-part", message, set())
    algorithm = getattr(parts.header, "protection-alg")
    return {
        "split": split,
        "encode": ask(gate, "encode", parts),
        "protected-part": covered,
        "mac": algorithm and ask(gate, "mac", algorithm, secret, covered),
    }


def about_message(gate, file, trusts):
    with open(file, "rb") as opened:
        message = opened.read()
    everything = {
        "non-minimal-lengths",
        "fractional-seconds",
        "explicit-ra-verified",
        "empty-lists",
    }
    return {
        "strict": read(gate, message, trusts, set()),
        "lenient": read(gate, message, trusts, everything),
        "parts": taken_apart(gate, message, trusts[0].payload),
    }


def main(component, questions):
    with open(questions, encoding="utf-8") as opened:
        questions = json.load(opened)
    backoff = Gate(component, "abide:cmp/backoff@0.1.0")
    policy = backoff("default-policy")
    answers = [policy] + [ask(backoff, "delay", policy, n) for n in questions["attempts"]]
    gate = Gate(component)
    answers.append(gate("error-content", "rejection", b"\x07\x02", ["no", "nein"]))
    trusts = [Variant("secret", secret.encode()) for secret in questions["secrets"]]
    trusts.append(Variant("kem", bytes.fromhex(questions["kem"])))
    given = questions["anchors"]
    certificates = [bytes.fromhex(certificate) for certificate in given["certificates"]]
    anchors = record(certificates=certificates, untrusted=[], at=given["at"], role=None)
    trusts.append(Variant("anchors", anchors))
    for file in questions["messages"]:
        answers.append(about_message(gate, file, trusts))
    for answer in answers:
        print(json.dumps(answer, default=plain))


main(*sys.argv[1:])
