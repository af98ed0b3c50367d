"""A line of the index."""

import dataclasses

COLUMNS = ("file", "maker", "body", "protection", "key", "verdict", "popo", "known")


@dataclasses.dataclass
class Vector:
    """What is known about one message.

    key      what the protection is checked with: `secret:TEXT`, `key:HEX`, or `anchor:FILE` of
             the folder pki; `-` without protection
    verdict  `valid`, `unprotected`, or `refused` for an algorithm that is to be refused
    popo     the proof of possession of the first request, `-` without one
    known    what was put in, as `name=value` separated by `;`
    """

    file: str
    maker: str
    body: str
    protection: str
    key: str
    verdict: str
    popo: str
    known: str

    def line(self) -> str:
        fields = [getattr(self, column) for column in COLUMNS]
        assert not any("\t" in field or "\n" in field or field == "" for field in fields), fields
        return "\t".join(fields)


def known(**values: object) -> str:
    """The column `known`."""
    return ";".join(f"{name}={value}" for name, value in values.items() if value is not None) or "-"
