//! Just enough DER to tell a certificate from a request from a key, and to compare
//! the key in a certificate with a key file. What matters to security is read by
//! the component; this only makes errors name the right file.

const SEQUENCE: u8 = 0x30;
const INTEGER: u8 = 0x02;
const BIT_STRING: u8 = 0x03;
const OCTET_STRING: u8 = 0x04;
/// `[0]`, constructed: the version of a certificate.
const VERSION: u8 = 0xa0;

/// What a DER value looks like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// X.509.
    Certificate,
    /// PKCS #10.
    Request,
    /// PKCS #8, PKCS #1 or SEC 1.
    PrivateKey,
    /// SubjectPublicKeyInfo.
    PublicKey,
    /// DER, but of no kind that abide reads from files.
    Other,
    /// Not one complete DER value.
    Broken,
}

impl Kind {
    /// The kind in words, with its article.
    pub fn name(self) -> &'static str {
        match self {
            Self::Certificate => "a certificate",
            Self::Request => "a PKCS #10 request",
            Self::PrivateKey => "a private key",
            Self::PublicKey => "a public key",
            Self::Other => "some other DER value",
            Self::Broken => "no complete DER value",
        }
    }
}

/// Tells what `der` is by its outermost fields.
pub fn kind(der: &[u8]) -> Kind {
    let Some((outer, [])) = read(der) else {
        return Kind::Broken;
    };
    if outer.tag != SEQUENCE {
        return Kind::Other;
    }
    let Some(fields) = fields(outer.content) else {
        return Kind::Broken;
    };
    let tags: Vec<u8> = fields.iter().map(|field| field.tag).collect();
    match tags[..] {
        [SEQUENCE, SEQUENCE, BIT_STRING] => match read(fields[0].content).map(|(field, _)| field) {
            Some(first) if first.tag == VERSION => Kind::Certificate,
            Some(first) if first.tag == INTEGER => signed_version_one(fields[0].content),
            _ => Kind::Other,
        },
        [SEQUENCE, BIT_STRING] => Kind::PublicKey,
        [INTEGER, SEQUENCE, OCTET_STRING, ..] | [INTEGER, OCTET_STRING, ..] => Kind::PrivateKey,
        [INTEGER, INTEGER, INTEGER, INTEGER, INTEGER, ..] => Kind::PrivateKey,
        _ => Kind::Other,
    }
}

/// A version 1 certificate starts with its serial number, a request with its
/// version; validity and the public key tell them apart.
fn signed_version_one(content: &[u8]) -> Kind {
    match fields(content).map(|fields| fields.len()) {
        Some(3 | 4) => Kind::Request,
        Some(_) => Kind::Certificate,
        None => Kind::Broken,
    }
}

/// The SubjectPublicKeyInfo of a certificate.
pub fn public_key(certificate: &[u8]) -> Option<&[u8]> {
    let (outer, _) = read(certificate)?;
    let (tbs, _) = read(outer.content)?;
    let fields = fields(tbs.content)?;
    let unversioned = match fields.first()?.tag {
        VERSION => &fields[1..],
        _ => &fields[..],
    };
    // serialNumber, signature, issuer, validity, subject, subjectPublicKeyInfo
    unversioned.get(5).map(|field| field.whole)
}

struct Field<'a> {
    tag: u8,
    content: &'a [u8],
    whole: &'a [u8],
}

/// All fields of a constructed value. Sixteen are more than any type read here
/// has; a longer list is not one of them.
fn fields(mut content: &[u8]) -> Option<Vec<Field<'_>>> {
    const MAX_FIELDS: usize = 16;
    let mut fields = Vec::new();
    while !content.is_empty() && fields.len() < MAX_FIELDS {
        let (field, rest) = read(content)?;
        fields.push(field);
        content = rest;
    }
    Some(fields)
}

/// One value with a single-octet tag and a definite length, and what follows it.
fn read(input: &[u8]) -> Option<(Field<'_>, &[u8])> {
    let (&tag, rest) = input.split_first()?;
    let (&first, rest) = rest.split_first()?;
    let (length, rest) = match first {
        0..=0x7f => (usize::from(first), rest),
        0x81..=0x84 => {
            let (octets, rest) = rest.split_at_checked(usize::from(first & 0x7f))?;
            let length = octets
                .iter()
                .fold(0u64, |length, &o| (length << 8) | u64::from(o));
            (usize::try_from(length).ok()?, rest)
        }
        _ => return None,
    };
    let (content, rest) = rest.split_at_checked(length)?;
    let whole = &input[..input.len() - rest.len()];
    Some((
        Field {
            tag,
            content,
            whole,
        },
        rest,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values by hand from the productions: only tags and order matter here.
    fn value(tag: u8, content: &[u8]) -> Vec<u8> {
        let mut out = vec![tag, 0x82];
        out.extend(u16::try_from(content.len()).unwrap().to_be_bytes());
        out.extend(content);
        out
    }

    fn sequence(fields: &[&[u8]]) -> Vec<u8> {
        value(SEQUENCE, &fields.concat())
    }

    fn spki() -> Vec<u8> {
        sequence(&[&sequence(&[]), &value(BIT_STRING, &[0, 1])])
    }

    fn signed(tbs: &[u8]) -> Vec<u8> {
        sequence(&[tbs, &sequence(&[]), &value(BIT_STRING, &[0])])
    }

    #[test]
    fn kinds_are_told_apart() {
        let (int, seq) = (value(INTEGER, &[1]), sequence(&[]));
        let names: [&[u8]; 5] = [&int, &seq, &seq, &seq, &seq];
        let v1 = signed(&sequence(&[&names.concat(), &spki()]));
        let v3 = signed(&sequence(&[
            &value(VERSION, &int),
            &names.concat(),
            &spki(),
        ]));
        let request = signed(&sequence(&[&int, &seq, &spki(), &value(0xa0, &[])]));
        let pkcs8 = sequence(&[&int, &seq, &value(OCTET_STRING, &[1])]);
        assert_eq!(kind(&v1), Kind::Certificate);
        assert_eq!(kind(&v3), Kind::Certificate);
        assert_eq!(kind(&request), Kind::Request);
        assert_eq!(kind(&pkcs8), Kind::PrivateKey);
        assert_eq!(
            kind(&sequence(&[&int, &value(OCTET_STRING, &[1])])),
            Kind::PrivateKey
        );
        assert_eq!(kind(&spki()), Kind::PublicKey);
        assert_eq!(kind(&int), Kind::Other);
        assert_eq!(public_key(&v1), Some(&spki()[..]));
        assert_eq!(public_key(&v3), Some(&spki()[..]));
    }

    #[test]
    fn incomplete_values_are_broken() {
        let whole = spki();
        for end in 0..whole.len() {
            assert_eq!(kind(&whole[..end]), Kind::Broken, "{end}");
        }
        let mut longer = whole;
        longer.push(0);
        assert_eq!(kind(&longer), Kind::Broken);
        assert_eq!(kind(&[0x30, 0x80, 0, 0]), Kind::Broken);
        assert_eq!(kind(&[0x30, 0x84, 0xff, 0xff, 0xff, 0xff]), Kind::Broken);
    }
}
