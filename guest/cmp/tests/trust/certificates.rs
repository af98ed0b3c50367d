use std::cell::Cell;

use abide_cmp::der::{Writer, tag};
use abide_cmp::oid::{self, Oid};
use abide_cmp::protection::{SignatureAlgorithm, SignatureVerifier, Verdict};
use abide_cmp::{Name, PublicKeyInfo, Time};

/// 2026-06-01T00:00:00Z; the certificates are valid from 2026-01-01 until 2026-12-31.
pub(crate) const NOW: i64 = 1_780_272_000;

pub(crate) fn now() -> Time {
    Time::from_unix(NOW)
}

pub(crate) type Extension = (Oid<'static>, bool, Vec<u8>);

/// A certificate that is to be.
#[derive(Clone)]
pub(crate) struct Template {
    pub(crate) subject: String,
    pub(crate) issuer: String,
    /// The subject's key, and the key it is signed with.
    pub(crate) key: String,
    pub(crate) signed_by: String,
    pub(crate) not_before: &'static str,
    pub(crate) not_after: &'static str,
    pub(crate) algorithm: Oid<'static>,
    pub(crate) extensions: Vec<Extension>,
}

/// The certificate of `subject`, whose key is called like it, signed by `issuer`.
pub(crate) fn end(subject: &str, issuer: &str) -> Template {
    Template {
        subject: format!("/CN={subject}"),
        issuer: format!("/CN={issuer}"),
        key: subject.to_owned(),
        signed_by: issuer.to_owned(),
        not_before: "260101000000Z",
        not_after: "261231235959Z",
        algorithm: oid::ED25519,
        extensions: Vec::new(),
    }
}

/// The same, of a CA.
pub(crate) fn ca(subject: &str, issuer: &str) -> Template {
    end(subject, issuer)
        .with(basic_constraints(true, None))
        .with(key_usage(0x04))
}

impl Template {
    pub(crate) fn with(mut self, extension: Extension) -> Self {
        self.extensions.retain(|(oid, ..)| *oid != extension.0);
        self.extensions.push(extension);
        self
    }

    pub(crate) fn without(mut self, unwanted: Oid<'_>) -> Self {
        self.extensions.retain(|(oid, ..)| *oid != unwanted);
        self
    }

    pub(crate) fn der(&self) -> Vec<u8> {
        let algorithm = |w: &mut Writer| w.sequence(|w| w.oid(self.algorithm));
        let name = |text: &str| Name::parse(text).expect("a name");
        Writer::encode(|w| {
            w.sequence(|w| {
                w.sequence(|w| {
                    w.explicit(0, |w| w.integer(2));
                    w.integer(1);
                    algorithm(w);
                    w.raw(name(&self.issuer).der());
                    w.sequence(|w| {
                        w.element(0x17, self.not_before.as_bytes());
                        w.element(0x17, self.not_after.as_bytes());
                    });
                    w.raw(name(&self.subject).der());
                    w.sequence(|w| {
                        w.sequence(|w| w.oid(oid::ED25519));
                        w.bits(tag::BIT_STRING, self.key.as_bytes());
                    });
                    if !self.extensions.is_empty() {
                        w.explicit(3, |w| {
                            w.sequence(|w| {
                                for (oid, critical, value) in &self.extensions {
                                    w.sequence(|w| {
                                        w.oid(*oid);
                                        if *critical {
                                            w.element(tag::BOOLEAN, &[0xff]);
                                        }
                                        w.octet_string(value);
                                    });
                                }
                            });
                        });
                    }
                });
                algorithm(w);
                w.bits(tag::BIT_STRING, self.signed_by.as_bytes());
            });
        })
    }
}

pub(crate) fn basic_constraints(ca: bool, path_length: Option<i64>) -> Extension {
    let value = Writer::encode(|w| {
        w.sequence(|w| {
            if ca {
                w.element(tag::BOOLEAN, &[0xff]);
            }
            if let Some(length) = path_length {
                w.integer(length);
            }
        });
    });
    (oid::BASIC_CONSTRAINTS, true, value)
}

/// keyUsage with these of the first eight bits.
pub(crate) fn key_usage(bits: u8) -> Extension {
    let unused = bits.trailing_zeros() as u8;
    (oid::KEY_USAGE, true, vec![0x03, 0x02, unused, bits])
}

pub(crate) fn subject_key(identifier: &[u8]) -> Extension {
    let value = Writer::encode(|w| w.octet_string(identifier));
    (oid::SUBJECT_KEY_IDENTIFIER, false, value)
}

pub(crate) fn authority_key(identifier: &[u8]) -> Extension {
    let value = Writer::encode(|w| w.sequence(|w| w.element(0x80, identifier)));
    (oid::AUTHORITY_KEY_IDENTIFIER, false, value)
}

pub(crate) fn purposes(purposes: &[Oid<'_>]) -> Extension {
    let value = Writer::encode(|w| w.sequence(|w| purposes.iter().for_each(|p| w.oid(*p))));
    (oid::EXTENDED_KEY_USAGE, false, value)
}

/// A GeneralName by its tag and content.
pub(crate) type General = (u8, Vec<u8>);

pub(crate) fn directory(name: &str) -> General {
    (0xa4, Name::parse(name).expect("a name").der().to_vec())
}

pub(crate) fn alt_names(names: &[General]) -> Extension {
    let value = Writer::encode(|w| {
        w.sequence(|w| names.iter().for_each(|(tag, value)| w.element(*tag, value)));
    });
    (oid::SUBJECT_ALT_NAME, false, value)
}

pub(crate) fn name_constraints(permitted: &[General], excluded: &[General]) -> Extension {
    let subtrees = |w: &mut Writer, number, names: &[General]| {
        if !names.is_empty() {
            w.explicit(number, |w| {
                for (tag, value) in names {
                    w.sequence(|w| w.element(*tag, value));
                }
            });
        }
    };
    let value = Writer::encode(|w| {
        w.sequence(|w| {
            subtrees(w, 0, permitted);
            subtrees(w, 1, excluded);
        });
    });
    (oid::NAME_CONSTRAINTS, true, value)
}

/// Takes a signature that repeats the key, and counts how often it was asked.
#[derive(Default)]
pub(crate) struct Tally(pub(crate) Cell<usize>);

impl SignatureVerifier for Tally {
    fn verify(
        &self,
        _: SignatureAlgorithm,
        key: &PublicKeyInfo<'_>,
        _: &[u8],
        signature: &[u8],
    ) -> Verdict {
        self.0.set(self.0.get() + 1);
        match signature == key.key {
            true => Verdict::Valid,
            false => Verdict::Invalid,
        }
    }
}
