//! The rules themselves.

use super::Rule;
use super::Weight::{Advice, Violation};
use crate::status::FailInfo;

macro_rules! laws {
    ($($name:ident = $weight:ident, $section:literal, $text:literal, $($bit:ident)?;)+) => {
        $(
            #[doc = $text]
            pub static $name: Rule = Rule {
                text: $text,
                section: $section,
                weight: $weight,
                fail_info: laws!(@bit $($bit)?),
            };
        )+
        /// Every rule that is checked.
        pub static ALL: &[&Rule] = &[$(&$name),+];
    };
    (@bit) => { FailInfo::NONE };
    (@bit $bit:ident) => { FailInfo::$bit };
}

laws! {
    // The header.
    PVNO_TOO_LOW = Violation, "RFC 9483, 3.1",
        "pvno is 3 where EnvelopedData, hashAlg, agreeMAC or RootCaKeyUpdateContent is used", BAD_DATA_FORMAT;
    PVNO_TOO_HIGH = Advice, "RFC 9810, 7",
        "pvno 3 is used only where the request or its expected response needs its syntax",;
    SENDER_UNNAMED = Violation, "RFC 9810, 5.1.1",
        "a sender that is the NULL-DN is told by senderKID", BAD_MESSAGE_CHECK;
    SENDER_OF_MAC = Violation, "RFC 9483, 3.1",
        "with a MAC, the name of the shared secret is the commonName of the sender",;
    SENDER_KID_OF_MAC = Violation, "RFC 9483, 3.1",
        "with a MAC, senderKID is the name in the sender's commonName", BAD_MESSAGE_CHECK;
    SENDER_KID_MISSING = Advice, "RFC 9810, 5.1.1",
        "senderKID is there in any case",;
    TRANSACTION_ID_MISSING = Violation, "RFC 9483, 3.5",
        "transactionID is there", BAD_DATA_FORMAT;
    TRANSACTION_ID_LENGTH = Violation, "RFC 9483, 3.1",
        "a new transactionID is 128 random bits, 16 octets", BAD_DATA_FORMAT;
    SENDER_NONCE_MISSING = Violation, "RFC 9483, 3.5",
        "senderNonce is there", BAD_SENDER_NONCE;
    SENDER_NONCE_SHORT = Violation, "RFC 9483, 3.5",
        "senderNonce has at least 128 bits, 16 octets", BAD_SENDER_NONCE;
    RECIP_NONCE_MISSING = Violation, "RFC 9483, 3.5",
        "recipNonce is there in all but the first message", BAD_RECIPIENT_NONCE;
    RECIP_NONCE_EARLY = Violation, "RFC 9483, 3.1",
        "recipNonce is absent in the first message", BAD_RECIPIENT_NONCE;
    // generalInfo.
    IMPLICIT_CONFIRM_VALUE = Violation, "RFC 9483, 3.1",
        "the value of implicitConfirm is NULL", BAD_DATA_FORMAT;
    IMPLICIT_CONFIRM_PLACE = Violation, "RFC 9483, 3.1",
        "implicitConfirm is in ir, cr, kur, p10cr, ip, cp and kup only", BAD_REQUEST;
    CONFIRM_WAIT_TIME_VALUE = Violation, "RFC 9483, 3.1",
        "the value of confirmWaitTime is a GeneralizedTime", BAD_DATA_FORMAT;
    CONFIRM_WAIT_TIME_IMPLICIT = Violation, "RFC 9483, 3.1",
        "confirmWaitTime is absent where implicitConfirm is there",;
    CONFIRM_WAIT_TIME_MISSING = Advice, "RFC 9483, 4.1.1",
        "a response that does not grant implicitConfirm tells confirmWaitTime",;
    MESSAGE_TIME_MISSING = Violation, "RFC 9483, 3.1",
        "messageTime is there where confirmWaitTime is", MISSING_TIME_STAMP;
    CERT_PROFILE_VALUE = Violation, "RFC 9483, 3.1",
        "the value of certProfile is a sequence of one UTF8String", BAD_DATA_FORMAT;
    CERT_PROFILE_PLACE = Violation, "RFC 9483, 3.1",
        "certProfile is in ir, cr, kur, p10cr and genm of certReqTemplate only", BAD_REQUEST;
    ORIG_PKI_MESSAGE = Violation, "RFC 9810, 5.1.1.3",
        "outside a nested message, origPKIMessage has exactly one PKIMessage", BAD_DATA_FORMAT;
    // Protection.
    ALGORITHM_ALONE = Violation, "RFC 9810, 5.1.1",
        "protectionAlg is absent where protection is", BAD_MESSAGE_CHECK;
    PROTECTION_ALONE = Violation, "RFC 9810, 5.1.1",
        "protectionAlg is there where protection is", BAD_MESSAGE_CHECK;
    UNPROTECTED = Violation, "RFC 9483, 3.5",
        "a message other than error is protected", BAD_MESSAGE_CHECK;
    UNPROTECTED_ERROR = Advice, "RFC 9483, 3.6.4",
        "an error is protected where the recipient can check it",;
    EXTRA_CERTS_MISSING = Violation, "RFC 9483, 3.3",
        "with a signature, a request or response that opens an operation brings the protection certificate in extraCerts", SIGNER_NOT_TRUSTED;
    SIGNER_MISSING = Violation, "RFC 9483, 3.3",
        "with a signature, extraCerts that are there contain the protection certificate", SIGNER_NOT_TRUSTED;
    SIGNER_NOT_FIRST = Violation, "RFC 9483, 3.3",
        "the first of extraCerts is the protection certificate",;
    SENDER_NOT_SUBJECT = Violation, "RFC 9483, 3.5",
        "sender is the subject of the protection certificate", BAD_MESSAGE_CHECK;
    SENDER_KID_ABSENT = Violation, "RFC 9483, 3.1",
        "senderKID is there where the protection certificate has a subjectKeyIdentifier", BAD_MESSAGE_CHECK;
    SENDER_KID_OTHER = Violation, "RFC 9483, 3.5",
        "senderKID is the subjectKeyIdentifier of the protection certificate", BAD_MESSAGE_CHECK;
    SIGNER_KEY_USAGE = Violation, "RFC 9483, 3.5",
        "keyUsage of the protection certificate, where it is there, has digitalSignature", SIGNER_NOT_TRUSTED;
    SIGNER_KEY = Violation, "RFC 9483, 3.1",
        "protectionAlg fits the key in the protection certificate", BAD_ALG;
    SIGNER_KEY_WEAK = Advice, "RFC 9481, 7",
        "the RSA key of the protection certificate has at least 2048 bits", BAD_ALG;
    WEAK_SIGNATURE = Advice, "RFC 9481, 7.1",
        "protection does not use MD5, SHA-1 or DSA", BAD_ALG;
    PBM_PARAMETERS = Violation, "RFC 9810, 5.1.3.1",
        "the parameters of id-PasswordBasedMac are a PBMParameter", BAD_DATA_FORMAT;
    PBM_SALT = Advice, "RFC 4211, 4.4",
        "the salt of id-PasswordBasedMac has at least 8 octets",;
    PBM_ITERATIONS_FEW = Violation, "RFC 9045, 4.3",
        "iterationCount of id-PasswordBasedMac is at least 100", BAD_ALG;
    PBM_ITERATIONS_ADVICE = Advice, "RFC 9045, 4.3",
        "iterationCount of id-PasswordBasedMac is typically at least 10 000",;
    PBM_HASH = Advice, "RFC 9481, 6.1",
        "one-way function and MAC of id-PasswordBasedMac are of those in RFC 9481, where SHA-1 is not", BAD_ALG;
    // ir, cr, kur.
    ONE_REQUEST = Violation, "RFC 9483, 4.1.1",
        "the request has exactly one CertReqMsg", BAD_REQUEST;
    REQUEST_ID = Violation, "RFC 9483, 4.1.1",
        "certReqId of the request is 0", BAD_REQUEST;
    TEMPLATE_VERSION = Violation, "RFC 9483, 4.1.1",
        "version of the certTemplate, where it is there, is 2", BAD_CERT_TEMPLATE;
    TEMPLATE_SUBJECT = Violation, "RFC 9483, 4.1.1",
        "certTemplate carries the subject, the NULL-DN only with a subjectAltName", BAD_CERT_TEMPLATE;
    TEMPLATE_FIELDS = Violation, "RFC 4211, 5",
        "certTemplate of a request has no serialNumber, signingAlg, issuerUID and subjectUID", BAD_CERT_TEMPLATE;
    POPO_MISSING = Violation, "RFC 9483, 4.1.1",
        "popo is there where the requester has made the key", BAD_POP;
    POPO_NEEDLESS = Violation, "RFC 9483, 4.1.1",
        "popo is absent where the key is to be made centrally", BAD_POP;
    POPO_INPUT = Violation, "RFC 9483, 4.1.1",
        "poposkInput is absent, because certTemplate has subject and publicKey", BAD_POP;
    POPO_ALGORITHM = Violation, "RFC 9483, 4.1.1",
        "algorithmIdentifier of the popo fits the publicKey", BAD_POP;
    POPO_SIGNATURE = Advice, "RFC 9483, 4.1.1",
        "popo is a signature where the key can sign", BAD_POP;
    POPO_RA_VERIFIED = Advice, "RFC 9810, 5.2.8.4",
        "raVerified is used by an RA only", NOT_AUTHORIZED;
    KUR_SIGNED = Violation, "RFC 9483, 4.1.3",
        "kur is signed with the certificate that is to be updated", WRONG_INTEGRITY;
    KUR_OLD_CERT_ID = Advice, "RFC 9483, 4.1.3",
        "kur names the certificate that is to be updated in the control oldCertID",;
    KUR_OTHER_CERT = Violation, "RFC 9483, 4.1.3",
        "oldCertID of kur names the certificate that signs it", BAD_CERT_ID;
    // p10cr.
    P10CR_SUBJECT = Violation, "RFC 9483, 4.1.4",
        "the request carries the subject, the NULL-DN only with a subjectAltName", BAD_CERT_TEMPLATE;
    P10CR_ALGORITHM = Violation, "RFC 9483, 4.1.4",
        "signatureAlgorithm of the request fits its subjectPKInfo", BAD_POP;
    // ip, cp, kup.
    CA_PUBS_PLACE = Violation, "RFC 9483, 4.1.2",
        "caPubs is in ip only",;
    CA_PUBS_ALONE = Violation, "RFC 9483, 4.1.1",
        "caPubs comes only with a certificate",;
    ONE_RESPONSE = Violation, "RFC 9483, 4.1.1",
        "the response has exactly one CertResponse", BAD_DATA_FORMAT;
    RESPONSE_ID = Violation, "RFC 9483, 4.1.1",
        "certReqId of the response is 0, or -1 in the cp to a p10cr", BAD_DATA_FORMAT;
    RESPONSE_STATUS = Violation, "RFC 9483, 4.1.1",
        "status of the response is accepted, grantedWithMods, rejection or waiting", BAD_DATA_FORMAT;
    FAIL_INFO_ON_SUCCESS = Violation, "RFC 9483, 4.1.1",
        "failInfo is absent with accepted and grantedWithMods", BAD_DATA_FORMAT;
    FAIL_INFO_ON_WAITING = Violation, "RFC 9483, 4.4",
        "failInfo is absent with waiting", BAD_DATA_FORMAT;
    CERTIFICATE_MISSING = Violation, "RFC 9483, 4.1.1",
        "certifiedKeyPair is there with accepted and grantedWithMods", BAD_DATA_FORMAT;
    CERTIFICATE_NEEDLESS = Violation, "RFC 9483, 4.1.1",
        "certifiedKeyPair is absent with rejection and waiting", BAD_DATA_FORMAT;
    CERTIFICATE_ENCRYPTED = Advice, "RFC 9483, 4.1.1",
        "certOrEncCert is the certificate in clear",;
    PRIVATE_KEY_FORM = Violation, "RFC 9483, 4.1.6",
        "a private key comes in EnvelopedData with one RecipientInfo that holds SignedData", BAD_DATA_FORMAT;
    CHAIN_MISSING = Violation, "RFC 9483, 3.3",
        "ip, cp and kup bring the chain of the new certificate in extraCerts",;
    // certConf.
    ONE_CERT_STATUS = Violation, "RFC 9483, 4.1.1",
        "certConf has exactly one CertStatus", BAD_REQUEST;
    CERT_STATUS_ID = Violation, "RFC 9483, 4.1.1",
        "certReqId of certConf is 0, or -1 after a p10cr", BAD_REQUEST;
    CERT_STATUS_STATUS = Violation, "RFC 9483, 4.1.1",
        "status of certConf is accepted or rejection", BAD_DATA_FORMAT;
    CERT_STATUS_FAIL_INFO = Violation, "RFC 9483, 4.1.1",
        "failInfo of certConf is absent with accepted", BAD_DATA_FORMAT;
    CERT_HASH_LENGTH = Violation, "RFC 9483, 4.1.1",
        "certHash is as long as a digest of hashAlg", BAD_CERT_ID;
    // rr, rp.
    ONE_REVOCATION = Violation, "RFC 9483, 4.2",
        "rr has exactly one RevDetails", BAD_REQUEST;
    REVOCATION_NAME = Violation, "RFC 9483, 4.2",
        "certDetails of rr has issuer and serialNumber", BAD_CERT_ID;
    REVOCATION_REASON = Violation, "RFC 9483, 4.2",
        "crlEntryDetails of rr is one reasonCode", BAD_REQUEST;
    REVOCATION_SIGNED = Violation, "RFC 9483, 4.2",
        "rr is signed with the certificate that is to be revoked", WRONG_INTEGRITY;
    ONE_REVOCATION_STATUS = Violation, "RFC 9483, 4.2",
        "rp has exactly one PKIStatusInfo", BAD_DATA_FORMAT;
    REVOCATION_STATUS = Violation, "RFC 9483, 4.2",
        "status of rp is accepted or rejection", BAD_DATA_FORMAT;
    REVOCATION_FAIL_INFO = Violation, "RFC 9483, 4.2",
        "failInfo of rp is absent with accepted", BAD_DATA_FORMAT;
    // genm, genp.
    ONE_INFO = Violation, "RFC 9483, 4.3",
        "genm and genp have exactly one InfoTypeAndValue", BAD_REQUEST;
    GENM_VALUE_NEEDLESS = Violation, "RFC 9483, 4.3",
        "genm for caCerts and certReqTemplate has no infoValue", BAD_REQUEST;
    GENM_VALUE_MISSING = Violation, "RFC 9483, 4.3.4",
        "genm for crlStatusList has an infoValue of one CRLStatus", BAD_REQUEST;
    TEMPLATE_WITH_KEY = Violation, "RFC 9483, 4.3.3",
        "certTemplate of a certReqTemplate has no publicKey",;
    // error, pollReq, pollRep.
    ERROR_STATUS = Violation, "RFC 9483, 3.6.4",
        "status of an error is rejection, or waiting to delay a response", BAD_DATA_FORMAT;
    ONE_POLL = Violation, "RFC 9483, 4.4",
        "pollReq and pollRep have exactly one entry", BAD_REQUEST;
    POLL_ID = Violation, "RFC 9483, 4.4",
        "certReqId of pollReq and pollRep is 0 or -1", BAD_REQUEST;
    CHECK_AFTER = Violation, "RFC 9483, 4.4",
        "checkAfter is a time in seconds, so not negative", BAD_DATA_FORMAT;
}
