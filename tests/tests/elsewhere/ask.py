"""Asks the component all that the Rust test asks, and prints one line of JSON for each answer.

    PYTHONPATH=examples/python python ask.py abide-gate.wasm QUESTIONS.json
"""

import json
import sys

from inspect_message import Gate, Refused, plain
from wasmtime.component import Record


def ask(gate, name, *arguments):
    try:
        return {"ok": gate(name, *arguments)}
    except Refused as refused:
        return {"err": refused.args[0]}


def anchors(given):
    record = Record()
    record.certificates = [bytes.fromhex(certificate) for certificate in given["certificates"]]
    record.at = given["at"]
    return record


def about_message(gate, file, trusts):
    with open(file, "rb") as opened:
        message = opened.read()
    return {
        "decode": ask(gate, "decode", message),
        "describe": ask(gate, "describe", message),
        "verify": [ask(gate, "verify", message, trust) for trust in trusts],
    }


def main(component, questions):
    with open(questions, encoding="utf-8") as opened:
        questions = json.load(opened)
    backoff = Gate(component, "abide:cmp/backoff@0.1.0")
    policy = backoff("default-policy")
    answers = [policy] + [ask(backoff, "delay", policy, n) for n in questions["attempts"]]
    gate = Gate(component)
    trusts = [questions["secret"].encode(), anchors(questions["anchors"])]
    for file in questions["messages"]:
        answers.append(about_message(gate, file, trusts))
    for answer in answers:
        print(json.dumps(answer, default=plain))


main(*sys.argv[1:])
