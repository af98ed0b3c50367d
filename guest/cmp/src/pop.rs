//! Challenge and response for proof of possession (RFC 9810, 5.2.8.3).

use crate::der::{Reader, Writer, tag};
use crate::encrypted::EnvelopedData;
use crate::error::{Context, Result};
use crate::x509::AlgorithmIdentifier;

/// A number that only the holder of the private key can read.
///
/// ```text
/// Challenge ::= SEQUENCE {
///     owf                AlgorithmIdentifier OPTIONAL,
///     witness            OCTET STRING,
///     challenge          OCTET STRING,
///     encryptedRand  [0] EnvelopedData OPTIONAL }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the fields are those of the production above")]
pub struct Challenge<'a> {
    pub owf: Option<AlgorithmIdentifier<'a>>,
    pub witness: &'a [u8],
    /// Empty where encryptedRand is used.
    pub challenge: &'a [u8],
    pub encrypted_rand: Option<EnvelopedData<'a>>,
}

impl<'a> Challenge<'a> {
    pub(crate) fn read(reader: &mut Reader<'a>) -> Result<Self> {
        let mut fields = reader.sequence()?;
        let owf = match fields.peek() {
            Some(tag::SEQUENCE) => Some(AlgorithmIdentifier::read(&mut fields).at("owf")?),
            _ => None,
        };
        let witness = fields.octet_string().at("witness")?.value;
        let challenge = fields.octet_string().at("challenge")?.value;
        let encrypted_rand = fields
            .explicit(0, |reader| {
                EnvelopedData::read(&reader.element(tag::SEQUENCE, "an EnvelopedData")?)
            })
            .at("encryptedRand")?;
        fields.finish()?;
        Ok(Self {
            owf,
            witness,
            challenge,
            encrypted_rand,
        })
    }

    pub(crate) fn write(&self, writer: &mut Writer) {
        writer.sequence(|w| {
            if let Some(owf) = &self.owf {
                owf.write(w);
            }
            w.octet_string(self.witness);
            w.octet_string(self.challenge);
            if let Some(rand) = &self.encrypted_rand {
                w.explicit(0, |w| rand.write(w, tag::SEQUENCE));
            }
        });
    }
}
