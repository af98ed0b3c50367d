#!/usr/bin/env python3
"""Makes the vectors anew: a throw-away PKI, messages by OpenSSL and Bouncy Castle, messages by
`openssl` and arithmetic, and INDEX.tsv, which tells what is known about each of them.

Usage: make.py        (from any folder; see ../README.md for what must be installed)
"""

import pathlib
import shutil
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True

import kem
import openssl_cmp
from pki import Pki
from vector import COLUMNS, Vector

HERE = pathlib.Path(__file__).resolve().parent
VECTORS = HERE.parent
JAVA = VECTORS.parents[3] / "tests/peers/java"
JARS = ":".join(f"/usr/share/java/{name}.jar" for name in ("bcpkix", "bcprov", "bcutil"))


def bouncy_castle(pki: Pki, out: pathlib.Path) -> list[Vector]:
    """The Java program writes its messages, and prints their lines of the index."""
    classes = pki.dir / "classes"
    sources = sorted(JAVA.glob("*.java"))
    subprocess.run(["javac", "-encoding", "UTF-8", "-cp", JARS, "-d", classes, *sources], check=True)
    lines = subprocess.run(
        ["java", "-cp", f"{classes}:{JARS}", "MakeVectors", pki.dir, out],
        check=True, encoding="utf-8", stdout=subprocess.PIPE).stdout
    return [Vector(*line.split("\t")) for line in lines.splitlines()]


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        messages = work / "messages"
        messages.mkdir()
        pki = Pki(work / "pki")
        vectors = openssl_cmp.make(pki, messages)
        vectors += bouncy_castle(pki, messages)
        vectors += kem.make(pki, messages)
        vectors.sort(key=lambda vector: vector.file)
        made = sorted(path.name for path in messages.iterdir())
        assert made == [vector.file for vector in vectors], "index and messages differ"

        for name in ("messages", "pki"):
            shutil.rmtree(VECTORS / name, ignore_errors=True)
        shutil.copytree(messages, VECTORS / "messages")
        (VECTORS / "pki").mkdir()
        for path in pki.public():
            shutil.copy(path, VECTORS / "pki")
        lines = ["\t".join(COLUMNS)] + [vector.line() for vector in vectors]
        (VECTORS / "INDEX.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")
        print(f"{len(vectors)} messages, {sum(p.stat().st_size for p in messages.iterdir())} octets")


if __name__ == "__main__":
    main()
