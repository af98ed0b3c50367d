//! Messages made to be as costly as a mebioctet can be.

use abide_cmp::der::{Writer, tag};
use abide_cmp::{BodyType, limits, oid};

/// The longest message that is read.
const SIZE: usize = limits::MESSAGE;

/// Octets left for what stands around a filling.
const ROOM: usize = 512;

/// The NULL-DN as a GeneralName.
const NOBODY: [u8; 4] = [0xa4, 0x02, 0x30, 0x00];

/// An element with any tag and any value.
pub(crate) fn element(tag: u8, value: &[u8]) -> Vec<u8> {
    Writer::encode(|w| w.element(tag, value))
}

pub(crate) fn sequence(value: &[u8]) -> Vec<u8> {
    element(tag::SEQUENCE, value)
}

/// So many copies of the same octets as fit into `size`, and not more than `most`.
pub(crate) fn fill(item: &[u8], size: usize, most: usize) -> Vec<u8> {
    item.repeat((size / item.len()).min(most))
}

/// A header with these names and optional fields.
fn header(sender: &[u8], recipient: &[u8], fields: &[u8]) -> Vec<u8> {
    sequence(&[&[0x02, 0x01, 0x02], sender, recipient, fields].concat())
}

fn message(header: &[u8], body: BodyType, content: &[u8], rest: &[u8]) -> Vec<u8> {
    let body = element(tag::constructed(body as u8), content);
    sequence(&[header, &body, rest].concat())
}

/// A message of nobody to nobody.
pub(crate) fn anonymous(body: BodyType, content: &[u8]) -> Vec<u8> {
    message(&header(&NOBODY, &NOBODY, &[]), body, content, &[])
}

/// The shortest message there is: a pkiConf.
pub(crate) fn shortest() -> Vec<u8> {
    anonymous(BodyType::PkiConf, &[0x05, 0x00])
}

/// At most so many copies of a message inside one.
pub(crate) fn nested(item: &[u8], most: usize) -> Vec<u8> {
    let list = fill(item, SIZE - ROOM, most);
    anonymous(BodyType::Nested, &sequence(&list))
}

/// Messages within messages that fill a message.
fn twice_nested(item: &[u8]) -> Vec<u8> {
    let most = limits::ELEMENTS;
    let list = fill(item, SIZE / 2, most);
    nested(&anonymous(BodyType::Nested, &sequence(&list)), most)
}

/// The shortest messages, 256 of them in each of as many as there is room for: a third level
/// would add nothing but itself.
pub(crate) fn nested_shortest() -> Vec<u8> {
    twice_nested(&shortest())
}

/// origPKIMessage in origPKIMessage, as deep as a message can be.
pub(crate) fn original_in_original() -> Vec<u8> {
    // From the inside out each level repeats what surrounds it, so lengths are worked out
    // first and the octets written once.
    let info = Writer::encode(|w| w.oid(oid::IT_ORIG_PKI_MESSAGE));
    let tail = element(tag::constructed(BodyType::PkiConf as u8), &[0x05, 0x00]);
    let mut levels = vec![shortest().len()];
    let header_length = |inner: usize| {
        // [8] { SEQUENCE { SEQUENCE { OID, SEQUENCE OF PKIMessage } } }
        let field = sized(sized(sized(info.len() + sized(inner))));
        sized(3 + 2 * NOBODY.len() + field)
    };
    loop {
        let inner = *levels.last().unwrap_or(&0);
        let whole = sized(header_length(inner) + tail.len());
        if whole > SIZE {
            break;
        }
        levels.push(whole);
    }
    let mut out = Vec::new();
    for pair in levels.windows(2).rev() {
        let inner = pair[0];
        let (value, list) = (sized(inner), info.len() + sized(inner));
        head(&mut out, tag::SEQUENCE, header_length(inner) + tail.len());
        head(
            &mut out,
            tag::SEQUENCE,
            3 + 2 * NOBODY.len() + sized(sized(sized(list))),
        );
        out.extend_from_slice(&[0x02, 0x01, 0x02]);
        out.extend_from_slice(&[NOBODY, NOBODY].concat());
        head(&mut out, tag::constructed(8), sized(sized(list)));
        head(&mut out, tag::SEQUENCE, sized(list));
        head(&mut out, tag::SEQUENCE, list);
        out.extend_from_slice(&info);
        head(&mut out, tag::SEQUENCE, value - (value - inner));
    }
    out.extend_from_slice(&shortest());
    for _ in 1..levels.len() {
        out.extend_from_slice(&tail);
    }
    out
}

/// Octets of an element whose value has this length.
fn sized(value: usize) -> usize {
    let mut octets = Vec::new();
    head(&mut octets, 0, value);
    octets.len() + value
}

/// Tag and length.
fn head(out: &mut Vec<u8>, tag: u8, length: usize) {
    out.push(tag);
    let octets = (length as u32).to_be_bytes();
    match length {
        0..0x80 => out.push(octets[3]),
        0x80..0x100 => out.extend_from_slice(&[0x81, octets[3]]),
        0x100..0x1_0000 => out.extend_from_slice(&[0x82, octets[2], octets[3]]),
        _ => out.extend_from_slice(&[0x83, octets[1], octets[2], octets[3]]),
    }
}

/// SEQUENCEs in each other, as the value of an information of unknown type.
pub(crate) fn deep_value() -> Vec<u8> {
    // Each level adds its tag and at most four octets of length.
    let depth = (SIZE - ROOM) / 5;
    let mut lengths = vec![0];
    for _ in 0..depth {
        lengths.push(sized(*lengths.last().unwrap_or(&0)));
    }
    let mut value = Vec::new();
    for length in lengths.iter().rev().skip(1) {
        head(&mut value, tag::SEQUENCE, *length);
    }
    let info = sequence(&[&[0x06, 0x01, 0x2a], &value[..]].concat());
    anonymous(BodyType::Genm, &sequence(&info))
}

/// AlgorithmIdentifiers as the parameters of each other.
pub(crate) fn deep_algorithm() -> Vec<u8> {
    const OID: [u8; 3] = [0x06, 0x01, 0x2a];
    // Each level adds tag, at most four octets of length, and the OID.
    let mut lengths = vec![OID.len()];
    for _ in 0..(SIZE - ROOM) / 8 {
        lengths.push(OID.len() + sized(*lengths.last().unwrap_or(&0)));
    }
    let mut value = Vec::new();
    for length in lengths.iter().rev() {
        head(&mut value, tag::SEQUENCE, *length);
        value.extend_from_slice(&OID);
    }
    let info = Writer::encode(|w| {
        w.sequence(|w| {
            w.oid(oid::IT_PREFERRED_SYMM_ALG);
            w.raw(&value);
        });
    });
    anonymous(BodyType::Genp, &sequence(&info))
}

/// A genm with as little as possible in each information.
pub(crate) fn infos() -> Vec<u8> {
    let info = sequence(&[0x06, 0x01, 0x2a]);
    let list = fill(&info, SIZE, limits::ELEMENTS);
    anonymous(BodyType::Genm, &sequence(&list))
}

/// A message full of those.
pub(crate) fn many_infos() -> Vec<u8> {
    twice_nested(&infos())
}

/// A request whose lists are as long as can be, of the smallest there is.
fn full_request() -> Vec<u8> {
    let attribute = sequence(&[0x06, 0x01, 0x2a, 0x05, 0x00]);
    let attributes = sequence(&fill(&attribute, SIZE, limits::ELEMENTS));
    let different = |n: u8| sequence(&[0x06, 0x01, n, 0x04, 0x00]);
    let extensions: Vec<u8> = (0..limits::EXTENSIONS as u8).flat_map(different).collect();
    let template = sequence(&element(tag::constructed(9), &extensions));
    let request = sequence(&[&[0x02, 0x01, 0x00], &template[..], &attributes].concat());
    sequence(&[request, attributes].concat())
}

/// An ir with one such request.
pub(crate) fn requests() -> Vec<u8> {
    anonymous(BodyType::Ir, &sequence(&full_request()))
}

/// A message full of requests, half of them full themselves and half of them bare.
pub(crate) fn many_requests() -> Vec<u8> {
    let bare = sequence(&sequence(&[0x02, 0x01, 0x00, 0x30, 0x00]));
    let bare = sequence(&fill(&bare, SIZE, limits::ELEMENTS));
    let full = sequence(&fill(&full_request(), SIZE / 2, limits::ELEMENTS));
    let bare = fill(
        &anonymous(BodyType::Ir, &bare),
        SIZE / 2 - ROOM,
        limits::ELEMENTS - 1,
    );
    let inner = [anonymous(BodyType::Ir, &full), bare].concat();
    anonymous(BodyType::Nested, &sequence(&inner))
}

/// An ip of one response with texts of one character.
pub(crate) fn texts() -> Vec<u8> {
    anonymous(BodyType::Ip, &sequence(&sequence(&response())))
}

fn response() -> Vec<u8> {
    let texts = sequence(&fill(&[0x0c, 0x01, 0x07], SIZE, limits::ELEMENTS));
    let status = sequence(&[&[0x02, 0x01, 0x02], &texts[..]].concat());
    sequence(&[&[0x02, 0x01, 0x00], &status[..]].concat())
}

/// A message full of those, in an ip of as many responses as can be.
pub(crate) fn many_texts() -> Vec<u8> {
    let responses = fill(&response(), SIZE, limits::ELEMENTS);
    let answer = anonymous(BodyType::Ip, &sequence(&sequence(&responses)));
    nested(&answer, limits::ELEMENTS)
}

/// One text that is a mebioctet of this octet.
pub(crate) fn long_text(octet: u8) -> Vec<u8> {
    let text = element(tag::UTF8_STRING, &vec![octet; SIZE - ROOM]);
    let status = sequence(&[&[0x02, 0x01, 0x02], &sequence(&text)[..]].concat());
    anonymous(BodyType::Error, &sequence(&status))
}

/// A sender whose commonName is a mebioctet of this octet.
pub(crate) fn long_sender(octet: u8) -> Vec<u8> {
    let sender = name(&attribute(tag::UTF8_STRING, &vec![octet; SIZE - ROOM]));
    let sender = element(tag::constructed(4), &sender);
    let header = header(&sender, &NOBODY, &[]);
    message(&header, BodyType::PkiConf, &[0x05, 0x00], &[])
}

/// An errorCode of a mebioctet.
pub(crate) fn long_integer() -> Vec<u8> {
    let code = element(tag::INTEGER, &vec![0x7f; SIZE - ROOM]);
    let status = sequence(&[0x02, 0x01, 0x02]);
    anonymous(BodyType::Error, &sequence(&[status, code].concat()))
}

/// An information whose type is made of this octet, with an end.
pub(crate) fn long_oid(octet: u8) -> Vec<u8> {
    let mut arcs = vec![octet; SIZE - ROOM];
    arcs.push(0x01);
    let info = sequence(&element(tag::OID, &arcs));
    anonymous(BodyType::Genm, &sequence(&info))
}

/// `crls` with a CRL that fills the message.
pub(crate) fn long_crl() -> Vec<u8> {
    let crl = sequence(&vec![0x30; SIZE - ROOM]);
    let info = Writer::encode(|w| {
        w.sequence(|w| {
            w.oid(oid::IT_CRLS);
            w.sequence(|w| w.raw(&crl));
        });
    });
    anonymous(BodyType::Genp, &sequence(&info))
}

/// A commonName, with the tag of its string.
pub(crate) fn attribute(string: u8, value: &[u8]) -> Vec<u8> {
    Writer::encode(|w| {
        w.sequence(|w| {
            w.oid(oid::AT_COMMON_NAME);
            w.element(string, value);
        });
    })
}

/// A Name of one RDN with these attributes.
pub(crate) fn name(attributes: &[u8]) -> Vec<u8> {
    sequence(&element(tag::SET, attributes))
}

/// What a certificate of the bombs is made of.
pub(crate) struct Parts<'a> {
    pub(crate) serial: usize,
    pub(crate) issuer: &'a [u8],
    pub(crate) subject: &'a [u8],
    /// DER SubjectPublicKeyInfo.
    pub(crate) key: &'a [u8],
    /// Extension elements without the SEQUENCE around them.
    pub(crate) extensions: &'a [u8],
    /// DER AlgorithmIdentifier of the signature.
    pub(crate) algorithm: &'a [u8],
    pub(crate) signature: &'a [u8],
}

pub(crate) fn certificate(parts: &Parts<'_>) -> Vec<u8> {
    let validity = [
        element(tag::UTC_TIME, b"260101000000Z"),
        element(tag::UTC_TIME, b"270101000000Z"),
    ]
    .concat();
    let tbs = Writer::encode(|w| {
        w.sequence(|w| {
            w.explicit(0, |w| w.integer(2));
            w.integer(parts.serial as i64);
            w.raw(parts.algorithm);
            w.raw(parts.issuer);
            w.raw(&sequence(&validity));
            w.raw(parts.subject);
            w.raw(parts.key);
            if !parts.extensions.is_empty() {
                w.explicit(3, |w| w.raw(&sequence(parts.extensions)));
            }
        });
    });
    Writer::encode(|w| {
        w.sequence(|w| {
            w.raw(&tbs);
            w.raw(parts.algorithm);
            w.bits(tag::BIT_STRING, parts.signature);
        });
    })
}

pub(crate) fn extension(oid: oid::Oid<'_>, value: &[u8]) -> Vec<u8> {
    Writer::encode(|w| {
        w.sequence(|w| {
            w.oid(oid);
            w.octet_string(value);
        });
    })
}

/// A genm that says it is signed by `sender`, with certificates and a filling.
pub(crate) fn signed(
    sender: &[u8],
    algorithm: &[u8],
    signature: &[u8],
    certificates: &[u8],
    filling: usize,
) -> Vec<u8> {
    let fields = element(tag::constructed(1), algorithm);
    let sender = element(tag::constructed(4), sender);
    let info = sequence(
        &[
            &[0x06, 0x01, 0x2a],
            &element(tag::OCTET_STRING, &vec![0; filling])[..],
        ]
        .concat(),
    );
    let bits = Writer::encode(|w| w.bits(tag::BIT_STRING, signature));
    let mut rest = element(tag::constructed(0), &bits);
    if !certificates.is_empty() {
        rest.extend(element(tag::constructed(1), &sequence(certificates)));
    }
    message(
        &header(&sender, &NOBODY, &fields),
        BodyType::Genm,
        &sequence(&info),
        &rest,
    )
}

/// What is hashed with to derive a key and to authenticate.
pub(crate) struct Hashes {
    pub(crate) owf: oid::Oid<'static>,
    pub(crate) hmac: oid::Oid<'static>,
}

/// A pkiConf under a password-based MAC with these iterations.
pub(crate) fn password_based(iterations: i64, hashes: &Hashes) -> Vec<u8> {
    authenticated(|w| {
        w.oid(oid::PASSWORD_BASED_MAC);
        w.sequence(|w| {
            w.octet_string(&[7; 16]);
            w.sequence(|w| w.oid(hashes.owf));
            w.integer(iterations);
            w.sequence(|w| w.oid(hashes.hmac));
        });
    })
}

/// A pkiConf under PBMAC1 with these iterations for a key of this length.
pub(crate) fn pbmac1(iterations: i64, key_length: i64, hashes: &Hashes) -> Vec<u8> {
    let hmac = |w: &mut Writer| {
        w.sequence(|w| {
            w.oid(hashes.hmac);
            w.null();
        });
    };
    authenticated(|w| {
        w.oid(oid::PBMAC1);
        w.sequence(|w| {
            w.sequence(|w| {
                w.oid(oid::PBKDF2);
                w.sequence(|w| {
                    w.octet_string(&[7; 16]);
                    w.integer(iterations);
                    w.integer(key_length);
                    hmac(w);
                });
            });
            hmac(w);
        });
    })
}

/// A pkiConf under a MAC that does not fit.
fn authenticated(algorithm: impl FnOnce(&mut Writer)) -> Vec<u8> {
    let fields = Writer::encode(|w| {
        w.explicit(1, |w| w.sequence(algorithm));
        w.explicit(2, |w| w.octet_string(&[0; 39]));
        w.explicit(4, |w| w.octet_string(&[1; 16]));
        w.explicit(5, |w| w.octet_string(&[2; 16]));
        w.explicit(6, |w| w.octet_string(&[3; 16]));
    });
    let bits = Writer::encode(|w| w.bits(tag::BIT_STRING, &[0; 32]));
    message(
        &header(&NOBODY, &NOBODY, &fields),
        BodyType::PkiConf,
        &[0x05, 0x00],
        &element(tag::constructed(0), &bits),
    )
}
