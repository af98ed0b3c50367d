"""Decodes a CMP message and checks its MAC, inside the sandbox, and prints both as JSON.

    python inspect_message.py ../../target/component/abide-gate.wasm MESSAGE.der SECRET
"""

import json
import sys

from wasmtime import Engine, Store, WasmtimeError
from wasmtime.component import Component, Linker, Record, Variant


class Refused(Exception):
    """The error side of a WIT result."""


class Gate:
    """The functions of an interface of the component, by their names in wit/message.wit."""

    def __init__(self, file, interface="abide:cmp/message@0.1.0"):
        engine = Engine()
        self.store = Store(engine)
        # A message can make it use no more than this, whatever is in it.
        self.store.set_limits(memory_size=64 << 20)
        self.instance = Linker(engine).instantiate(self.store, Component.from_file(engine, file))
        self.interface = self.instance.get_export_index(self.store, interface)

    def __call__(self, name, *arguments):
        index = self.instance.get_export_index(self.store, name, self.interface)
        function = self.instance.get_func(self.store, index)
        result = function(self.store, *arguments)
        function.post_return(self.store)
        # Both sides of a result come bare where their Python types differ, else tagged.
        tag = result.tag if isinstance(result, Variant) else None
        if tag == "ok":
            return result.payload
        if tag or hasattr(result, "rule"):
            raise Refused(result.payload if tag == "err" else result)
        return result


def plain(value):
    """What JSON has no word for: records, variants, flags and octets."""
    if isinstance(value, Record):
        return vars(value)
    if isinstance(value, Variant):
        return {value.tag: value.payload}
    return value.hex() if isinstance(value, bytes) else sorted(value)


def main(component, file, secret):
    try:
        gate = Gate(component)
        with open(file, "rb") as opened:
            message = opened.read()
        # WIT's flags are a set of names: here none, so strict DER.
        shown = {"message": gate("decode", message, set())}
    except (OSError, WasmtimeError) as error:
        sys.exit(f"inspect_message: {error}")
    except Refused as refused:
        why = refused.args[0]
        place = f"at octet {why.offset}, {why.path or 'PKIMessage'}"
        sys.exit(f"{file}: no CMP message: {place}: {why.rule}")
    try:
        options = Record()
        options.leniency = set()
        setattr(options, "allow-sha1", False)
        trust = Variant("secret", secret.encode())
        shown["verified"] = gate("verify", message, trust, options)
    except Refused as refused:
        shown["refused"] = refused.args[0]
    print(json.dumps(shown, default=plain, indent=2))


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    main(*sys.argv[1:])
