//! Object identifiers and the names the RFCs give them.

use core::fmt;

/// An object identifier, kept as the octets of its encoding.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Oid<'a>(&'a [u8]);

impl<'a> Oid<'a> {
    /// From the value octets of an OBJECT IDENTIFIER; none if they are malformed or more
    /// than [`limits::OID`](crate::limits::OID).
    pub fn from_content(content: &'a [u8]) -> Option<Self> {
        if content.len() > crate::limits::OID {
            return None;
        }
        let ends = content.last().is_some_and(|last| last & 0x80 == 0);
        let mut arc_starts = true;
        for &octet in content {
            if arc_starts && octet == 0x80 {
                return None;
            }
            arc_starts = octet & 0x80 == 0;
        }
        ends.then_some(Self(content))
    }

    /// The value octets.
    pub fn content(&self) -> &'a [u8] {
        self.0
    }

    /// The name in the RFCs, if it is a known one.
    pub fn name(&self) -> Option<&'static str> {
        NAMES
            .iter()
            .find(|(oid, _)| oid.0 == self.0)
            .map(|&(_, name)| name)
    }
}

impl fmt::Display for Oid<'_> {
    /// The dotted form.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut first = true;
        let mut arc: u128 = 0;
        for &octet in self.0 {
            let Some(shifted) = arc.checked_mul(128) else {
                // An arc beyond 128 bits, as UUIDs use, is shown by its octets.
                return f.write_str(".…");
            };
            arc = shifted + u128::from(octet & 0x7f);
            if octet & 0x80 != 0 {
                continue;
            }
            if first {
                let top = (arc / 40).min(2);
                write!(f, "{top}.{}", arc - top * 40)?;
                first = false;
            } else {
                write!(f, ".{arc}")?;
            }
            arc = 0;
        }
        Ok(())
    }
}

impl fmt::Debug for Oid<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The encoding of an object identifier and its length, worked out by the compiler.
const fn encode(arcs: &[u32]) -> ([u8; 24], usize) {
    let mut out = [0; 24];
    let mut at = 0;
    let mut index = 1;
    while index < arcs.len() {
        let arc = if index == 1 {
            arcs[0] * 40 + arcs[1]
        } else {
            arcs[index]
        };
        let mut septets = 1;
        while septets < 5 && (arc >> (7 * septets)) > 0 {
            septets += 1;
        }
        while septets > 0 {
            septets -= 1;
            let more = if septets > 0 { 0x80 } else { 0 };
            out[at] = more | ((arc >> (7 * septets)) & 0x7f) as u8;
            at += 1;
        }
        index += 1;
    }
    (out, at)
}

/// The value octets of an object identifier in dotted form; none where the text is not one, or
/// has an arc beyond 32 bits.
pub fn parse(dotted: &str) -> Option<alloc::vec::Vec<u8>> {
    let mut arcs = dotted.split('.').map(|arc| {
        let plain = arc.bytes().all(|digit| digit.is_ascii_digit());
        let minimal = arc == "0" || !arc.starts_with('0');
        (plain && minimal).then(|| arc.parse::<u32>().ok())?
    });
    let (first, second) = (arcs.next()??, arcs.next()??);
    if first > 2 || (first < 2 && second > 39) {
        return None;
    }
    let mut content = alloc::vec::Vec::new();
    let mut push = |arc: u64| {
        let septets = (64 - arc.leading_zeros()).div_ceil(7).max(1);
        for left in (0..septets).rev() {
            let more = if left > 0 { 0x80 } else { 0 };
            content.push(more | ((arc >> (7 * left)) & 0x7f) as u8);
        }
    };
    push(u64::from(first) * 40 + u64::from(second));
    for arc in arcs {
        push(arc?.into());
    }
    Some(content)
}

macro_rules! oids {
    ($($name:ident = [$($arc:literal),+], $text:literal;)+) => {
        $(
            #[doc = concat!("`", $text, "`")]
            pub const $name: Oid<'static> = {
                const ENCODED: &([u8; 24], usize) = &encode(&[$($arc),+]);
                Oid(ENCODED.0.split_at(ENCODED.1).0)
            };
        )+
        const NAMES: &[(Oid<'static>, &str)] = &[$(($name, $text)),+];
    };
}

oids! {
    // Hash functions, RFC 9481, 2.
    SHA1 = [1, 3, 14, 3, 2, 26], "id-sha1";
    SHA224 = [2, 16, 840, 1, 101, 3, 4, 2, 4], "id-sha224";
    SHA256 = [2, 16, 840, 1, 101, 3, 4, 2, 1], "id-sha256";
    SHA384 = [2, 16, 840, 1, 101, 3, 4, 2, 2], "id-sha384";
    SHA512 = [2, 16, 840, 1, 101, 3, 4, 2, 3], "id-sha512";
    // Message authentication codes, RFC 9481, 6.
    PASSWORD_BASED_MAC = [1, 2, 840, 113533, 7, 66, 13], "id-PasswordBasedMac";
    DH_BASED_MAC = [1, 2, 840, 113533, 7, 66, 30], "id-DHBasedMac";
    KEM_BASED_MAC = [1, 2, 840, 113533, 7, 66, 16], "id-KemBasedMac";
    PBMAC1 = [1, 2, 840, 113549, 1, 5, 14], "id-PBMAC1";
    PBKDF2 = [1, 2, 840, 113549, 1, 5, 12], "id-PBKDF2";
    HMAC_SHA1_IPSEC = [1, 3, 6, 1, 5, 5, 8, 1, 2], "id-hmacSHA1";
    HMAC_SHA1 = [1, 2, 840, 113549, 2, 7], "id-hmacWithSHA1";
    HMAC_SHA224 = [1, 2, 840, 113549, 2, 8], "id-hmacWithSHA224";
    HMAC_SHA256 = [1, 2, 840, 113549, 2, 9], "id-hmacWithSHA256";
    HMAC_SHA384 = [1, 2, 840, 113549, 2, 10], "id-hmacWithSHA384";
    HMAC_SHA512 = [1, 2, 840, 113549, 2, 11], "id-hmacWithSHA512";
    AES128_GMAC = [2, 16, 840, 1, 101, 3, 4, 1, 9], "id-aes128-GMAC";
    AES192_GMAC = [2, 16, 840, 1, 101, 3, 4, 1, 29], "id-aes192-GMAC";
    AES256_GMAC = [2, 16, 840, 1, 101, 3, 4, 1, 49], "id-aes256-GMAC";
    KMAC128 = [2, 16, 840, 1, 101, 3, 4, 2, 19], "id-KMAC128";
    KMAC256 = [2, 16, 840, 1, 101, 3, 4, 2, 20], "id-KMAC256";
    // Key derivation, RFC 8619 and RFC 9690.
    HKDF_SHA256 = [1, 2, 840, 113549, 1, 9, 16, 3, 28], "id-alg-hkdf-with-sha256";
    HKDF_SHA384 = [1, 2, 840, 113549, 1, 9, 16, 3, 29], "id-alg-hkdf-with-sha384";
    HKDF_SHA512 = [1, 2, 840, 113549, 1, 9, 16, 3, 30], "id-alg-hkdf-with-sha512";
    KDF3 = [1, 3, 133, 16, 840, 9, 44, 1, 2], "id-kdf-kdf3";
    // Key encapsulation, RFC 9935 and RFC 9690.
    ML_KEM_512 = [2, 16, 840, 1, 101, 3, 4, 4, 1], "id-alg-ml-kem-512";
    ML_KEM_768 = [2, 16, 840, 1, 101, 3, 4, 4, 2], "id-alg-ml-kem-768";
    ML_KEM_1024 = [2, 16, 840, 1, 101, 3, 4, 4, 3], "id-alg-ml-kem-1024";
    RSA_KEM = [1, 2, 840, 113549, 1, 9, 16, 3, 14], "id-rsa-kem";
    // Signatures, RFC 9481, 3, and RFC 9881.
    RSA_ENCRYPTION = [1, 2, 840, 113549, 1, 1, 1], "rsaEncryption";
    RSA_PSS = [1, 2, 840, 113549, 1, 1, 10], "id-RSASSA-PSS";
    MGF1 = [1, 2, 840, 113549, 1, 1, 8], "id-mgf1";
    RSA_PSS_SHAKE128 = [1, 3, 6, 1, 5, 5, 7, 6, 30], "id-RSASSA-PSS-SHAKE128";
    RSA_PSS_SHAKE256 = [1, 3, 6, 1, 5, 5, 7, 6, 31], "id-RSASSA-PSS-SHAKE256";
    ECDSA_SHAKE128 = [1, 3, 6, 1, 5, 5, 7, 6, 32], "id-ecdsa-with-shake128";
    ECDSA_SHAKE256 = [1, 3, 6, 1, 5, 5, 7, 6, 33], "id-ecdsa-with-shake256";
    RSA_SHA1 = [1, 2, 840, 113549, 1, 1, 5], "sha1WithRSAEncryption";
    RSA_SHA224 = [1, 2, 840, 113549, 1, 1, 14], "sha224WithRSAEncryption";
    RSA_SHA256 = [1, 2, 840, 113549, 1, 1, 11], "sha256WithRSAEncryption";
    RSA_SHA384 = [1, 2, 840, 113549, 1, 1, 12], "sha384WithRSAEncryption";
    RSA_SHA512 = [1, 2, 840, 113549, 1, 1, 13], "sha512WithRSAEncryption";
    ECDSA_SHA1 = [1, 2, 840, 10045, 4, 1], "ecdsa-with-SHA1";
    ECDSA_SHA224 = [1, 2, 840, 10045, 4, 3, 1], "ecdsa-with-SHA224";
    ECDSA_SHA256 = [1, 2, 840, 10045, 4, 3, 2], "ecdsa-with-SHA256";
    ECDSA_SHA384 = [1, 2, 840, 10045, 4, 3, 3], "ecdsa-with-SHA384";
    ECDSA_SHA512 = [1, 2, 840, 10045, 4, 3, 4], "ecdsa-with-SHA512";
    ED25519 = [1, 3, 101, 112], "id-Ed25519";
    ED448 = [1, 3, 101, 113], "id-Ed448";
    ML_DSA_44 = [2, 16, 840, 1, 101, 3, 4, 3, 17], "id-ml-dsa-44";
    ML_DSA_65 = [2, 16, 840, 1, 101, 3, 4, 3, 18], "id-ml-dsa-65";
    ML_DSA_87 = [2, 16, 840, 1, 101, 3, 4, 3, 19], "id-ml-dsa-87";
    // Cryptographic Message Syntax, RFC 5652, 4 to 6 and 11, and RFC 5958, 2.
    CMS_DATA = [1, 2, 840, 113549, 1, 7, 1], "id-data";
    CMS_SIGNED_DATA = [1, 2, 840, 113549, 1, 7, 2], "id-signedData";
    CMS_KEY_PACKAGE = [2, 16, 840, 1, 101, 2, 1, 2, 78, 5], "id-ct-KP-aKeyPackage";
    CMS_CONTENT_TYPE = [1, 2, 840, 113549, 1, 9, 3], "id-contentType";
    CMS_MESSAGE_DIGEST = [1, 2, 840, 113549, 1, 9, 4], "id-messageDigest";
    // Key management, RFC 9481, 4.
    RSAES_OAEP = [1, 2, 840, 113549, 1, 1, 7], "id-RSAES-OAEP";
    P_SPECIFIED = [1, 2, 840, 113549, 1, 1, 9], "id-pSpecified";
    ECDH_STD_SHA1 = [1, 3, 133, 16, 840, 63, 0, 2], "dhSinglePass-stdDH-sha1kdf-scheme";
    ECDH_STD_SHA224 = [1, 3, 132, 1, 11, 0], "dhSinglePass-stdDH-sha224kdf-scheme";
    ECDH_STD_SHA256 = [1, 3, 132, 1, 11, 1], "dhSinglePass-stdDH-sha256kdf-scheme";
    ECDH_STD_SHA384 = [1, 3, 132, 1, 11, 2], "dhSinglePass-stdDH-sha384kdf-scheme";
    ECDH_STD_SHA512 = [1, 3, 132, 1, 11, 3], "dhSinglePass-stdDH-sha512kdf-scheme";
    AES128_WRAP = [2, 16, 840, 1, 101, 3, 4, 1, 5], "id-aes128-wrap";
    AES192_WRAP = [2, 16, 840, 1, 101, 3, 4, 1, 25], "id-aes192-wrap";
    AES256_WRAP = [2, 16, 840, 1, 101, 3, 4, 1, 45], "id-aes256-wrap";
    PWRI_KEK = [1, 2, 840, 113549, 1, 9, 16, 3, 9], "id-alg-PWRI-KEK";
    // Content encryption, RFC 9481, 5.
    AES128_CBC = [2, 16, 840, 1, 101, 3, 4, 1, 2], "id-aes128-CBC";
    AES192_CBC = [2, 16, 840, 1, 101, 3, 4, 1, 22], "id-aes192-CBC";
    AES256_CBC = [2, 16, 840, 1, 101, 3, 4, 1, 42], "id-aes256-CBC";
    // Public keys, RFC 5480.
    EC_PUBLIC_KEY = [1, 2, 840, 10045, 2, 1], "id-ecPublicKey";
    P256 = [1, 2, 840, 10045, 3, 1, 7], "secp256r1";
    P384 = [1, 3, 132, 0, 34], "secp384r1";
    P521 = [1, 3, 132, 0, 35], "secp521r1";
    // Certificate extensions, RFC 5280, 4.2.1.
    SUBJECT_KEY_IDENTIFIER = [2, 5, 29, 14], "id-ce-subjectKeyIdentifier";
    KEY_USAGE = [2, 5, 29, 15], "id-ce-keyUsage";
    SUBJECT_ALT_NAME = [2, 5, 29, 17], "id-ce-subjectAltName";
    ISSUER_ALT_NAME = [2, 5, 29, 18], "id-ce-issuerAltName";
    BASIC_CONSTRAINTS = [2, 5, 29, 19], "id-ce-basicConstraints";
    CRL_REASON = [2, 5, 29, 21], "id-ce-cRLReasons";
    ISSUING_DISTRIBUTION_POINT = [2, 5, 29, 28], "id-ce-issuingDistributionPoint";
    NAME_CONSTRAINTS = [2, 5, 29, 30], "id-ce-nameConstraints";
    CRL_DISTRIBUTION_POINTS = [2, 5, 29, 31], "id-ce-cRLDistributionPoints";
    CERTIFICATE_POLICIES = [2, 5, 29, 32], "id-ce-certificatePolicies";
    AUTHORITY_KEY_IDENTIFIER = [2, 5, 29, 35], "id-ce-authorityKeyIdentifier";
    EXTENDED_KEY_USAGE = [2, 5, 29, 37], "id-ce-extKeyUsage";
    FRESHEST_CRL = [2, 5, 29, 46], "id-ce-freshestCRL";
    AUTHORITY_INFO_ACCESS = [1, 3, 6, 1, 5, 5, 7, 1, 1], "id-pe-authorityInfoAccess";
    SIGNED_CERTIFICATE_TIMESTAMPS = [1, 3, 6, 1, 4, 1, 11129, 2, 4, 2], "signedCertificateTimestamps";
    // Purposes of keys, RFC 6402, 2.10, and RFC 9810, 4.5.
    KP_CMC_CA = [1, 3, 6, 1, 5, 5, 7, 3, 27], "id-kp-cmcCA";
    KP_CMC_RA = [1, 3, 6, 1, 5, 5, 7, 3, 28], "id-kp-cmcRA";
    KP_CM_KGA = [1, 3, 6, 1, 5, 5, 7, 3, 32], "id-kp-cmKGA";
    // Information types, RFC 9810, 5.3.19.
    IT_CA_PROT_ENC_CERT = [1, 3, 6, 1, 5, 5, 7, 4, 1], "id-it-caProtEncCert";
    IT_SIGN_KEY_PAIR_TYPES = [1, 3, 6, 1, 5, 5, 7, 4, 2], "id-it-signKeyPairTypes";
    IT_ENC_KEY_PAIR_TYPES = [1, 3, 6, 1, 5, 5, 7, 4, 3], "id-it-encKeyPairTypes";
    IT_PREFERRED_SYMM_ALG = [1, 3, 6, 1, 5, 5, 7, 4, 4], "id-it-preferredSymmAlg";
    IT_CA_KEY_UPDATE_INFO = [1, 3, 6, 1, 5, 5, 7, 4, 5], "id-it-caKeyUpdateInfo";
    IT_CURRENT_CRL = [1, 3, 6, 1, 5, 5, 7, 4, 6], "id-it-currentCRL";
    IT_UNSUPPORTED_OIDS = [1, 3, 6, 1, 5, 5, 7, 4, 7], "id-it-unsupportedOIDs";
    IT_KEY_PAIR_PARAM_REQ = [1, 3, 6, 1, 5, 5, 7, 4, 10], "id-it-keyPairParamReq";
    IT_KEY_PAIR_PARAM_REP = [1, 3, 6, 1, 5, 5, 7, 4, 11], "id-it-keyPairParamRep";
    IT_REV_PASSPHRASE = [1, 3, 6, 1, 5, 5, 7, 4, 12], "id-it-revPassphrase";
    IT_IMPLICIT_CONFIRM = [1, 3, 6, 1, 5, 5, 7, 4, 13], "id-it-implicitConfirm";
    IT_CONFIRM_WAIT_TIME = [1, 3, 6, 1, 5, 5, 7, 4, 14], "id-it-confirmWaitTime";
    IT_ORIG_PKI_MESSAGE = [1, 3, 6, 1, 5, 5, 7, 4, 15], "id-it-origPKIMessage";
    IT_SUPP_LANG_TAGS = [1, 3, 6, 1, 5, 5, 7, 4, 16], "id-it-suppLangTags";
    IT_CA_CERTS = [1, 3, 6, 1, 5, 5, 7, 4, 17], "id-it-caCerts";
    IT_ROOT_CA_KEY_UPDATE = [1, 3, 6, 1, 5, 5, 7, 4, 18], "id-it-rootCaKeyUpdate";
    IT_CERT_REQ_TEMPLATE = [1, 3, 6, 1, 5, 5, 7, 4, 19], "id-it-certReqTemplate";
    IT_ROOT_CA_CERT = [1, 3, 6, 1, 5, 5, 7, 4, 20], "id-it-rootCaCert";
    IT_CERT_PROFILE = [1, 3, 6, 1, 5, 5, 7, 4, 21], "id-it-certProfile";
    IT_CRL_STATUS_LIST = [1, 3, 6, 1, 5, 5, 7, 4, 22], "id-it-crlStatusList";
    IT_CRLS = [1, 3, 6, 1, 5, 5, 7, 4, 23], "id-it-crls";
    IT_KEM_CIPHERTEXT_INFO = [1, 3, 6, 1, 5, 5, 7, 4, 24], "id-it-KemCiphertextInfo";
    // Controls and registration information, RFC 4211, 6 and 7, and RFC 9480.
    REG_CTRL_REG_TOKEN = [1, 3, 6, 1, 5, 5, 7, 5, 1, 1], "id-regCtrl-regToken";
    REG_CTRL_AUTHENTICATOR = [1, 3, 6, 1, 5, 5, 7, 5, 1, 2], "id-regCtrl-authenticator";
    REG_CTRL_PKI_PUBLICATION_INFO = [1, 3, 6, 1, 5, 5, 7, 5, 1, 3], "id-regCtrl-pkiPublicationInfo";
    REG_CTRL_PKI_ARCHIVE_OPTIONS = [1, 3, 6, 1, 5, 5, 7, 5, 1, 4], "id-regCtrl-pkiArchiveOptions";
    REG_CTRL_OLD_CERT_ID = [1, 3, 6, 1, 5, 5, 7, 5, 1, 5], "id-regCtrl-oldCertID";
    REG_CTRL_PROTOCOL_ENCR_KEY = [1, 3, 6, 1, 5, 5, 7, 5, 1, 6], "id-regCtrl-protocolEncrKey";
    REG_CTRL_ALT_CERT_TEMPLATE = [1, 3, 6, 1, 5, 5, 7, 5, 1, 7], "id-regCtrl-altCertTemplate";
    REG_CTRL_ALG_ID = [1, 3, 6, 1, 5, 5, 7, 5, 1, 11], "id-regCtrl-algId";
    REG_CTRL_RSA_KEY_LEN = [1, 3, 6, 1, 5, 5, 7, 5, 1, 12], "id-regCtrl-rsaKeyLen";
    REG_INFO_UTF8_PAIRS = [1, 3, 6, 1, 5, 5, 7, 5, 2, 1], "id-regInfo-utf8Pairs";
    REG_INFO_CERT_REQ = [1, 3, 6, 1, 5, 5, 7, 5, 2, 2], "id-regInfo-certReq";
    // Attributes of names, RFC 4519 and RFC 5280, appendix A.
    AT_COMMON_NAME = [2, 5, 4, 3], "CN";
    AT_SURNAME = [2, 5, 4, 4], "SN";
    AT_SERIAL_NUMBER = [2, 5, 4, 5], "serialNumber";
    AT_COUNTRY = [2, 5, 4, 6], "C";
    AT_LOCALITY = [2, 5, 4, 7], "L";
    AT_STATE = [2, 5, 4, 8], "ST";
    AT_STREET = [2, 5, 4, 9], "street";
    AT_ORGANIZATION = [2, 5, 4, 10], "O";
    AT_ORGANIZATIONAL_UNIT = [2, 5, 4, 11], "OU";
    AT_TITLE = [2, 5, 4, 12], "title";
    AT_GIVEN_NAME = [2, 5, 4, 42], "GN";
    AT_INITIALS = [2, 5, 4, 43], "initials";
    AT_DN_QUALIFIER = [2, 5, 4, 46], "dnQualifier";
    AT_PSEUDONYM = [2, 5, 4, 65], "pseudonym";
    AT_ORGANIZATION_IDENTIFIER = [2, 5, 4, 97], "organizationIdentifier";
    AT_USER_ID = [0, 9, 2342, 19200300, 100, 1, 1], "UID";
    AT_DOMAIN_COMPONENT = [0, 9, 2342, 19200300, 100, 1, 25], "DC";
    AT_EMAIL = [1, 2, 840, 113549, 1, 9, 1], "emailAddress";
    // Attributes of PKCS #10, RFC 2985.
    EXTENSION_REQUEST = [1, 2, 840, 113549, 1, 9, 14], "extensionRequest";
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::*;

    #[test]
    fn encodings_are_those_of_openssl() {
        // `openssl asn1parse -genstr OID:… -out f; xxd f`
        assert_eq!(
            SHA256.content(),
            [0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x02, 0x01]
        );
        assert_eq!(
            PASSWORD_BASED_MAC.content(),
            [0x2a, 0x86, 0x48, 0x86, 0xf6, 0x7d, 0x07, 0x42, 0x0d]
        );
        assert_eq!(
            AT_USER_ID.content(),
            [0x09, 0x92, 0x26, 0x89, 0x93, 0xf2, 0x2c, 0x64, 0x01, 0x01]
        );
    }

    #[test]
    fn dotted_form_and_name() {
        assert_eq!(PASSWORD_BASED_MAC.to_string(), "1.2.840.113533.7.66.13");
        assert_eq!(AT_USER_ID.to_string(), "0.9.2342.19200300.100.1.1");
        assert_eq!(Oid(&[0x88, 0x37, 0x03]).to_string(), "2.999.3");
        assert_eq!(SHA256.name(), Some("id-sha256"));
        assert_eq!(Oid(&[0x2a, 0x03]).name(), None);
    }

    #[test]
    fn malformed_content_is_refused() {
        assert!(Oid::from_content(&[]).is_none());
        assert!(Oid::from_content(&[0x2a, 0x86]).is_none());
        assert!(Oid::from_content(&[0x2a, 0x80, 0x01]).is_none());
        assert!(Oid::from_content(&[0x2a, 0x03]).is_some());
    }
}
