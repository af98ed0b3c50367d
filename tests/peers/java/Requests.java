import java.math.BigInteger;
import java.util.ArrayList;
import java.util.List;
import org.bouncycastle.asn1.ASN1Encodable;
import org.bouncycastle.asn1.ASN1Enumerated;
import org.bouncycastle.asn1.ASN1ObjectIdentifier;
import org.bouncycastle.asn1.ASN1Sequence;
import org.bouncycastle.asn1.DERSequence;
import org.bouncycastle.asn1.cmp.CMPCertificate;
import org.bouncycastle.asn1.cmp.GenMsgContent;
import org.bouncycastle.asn1.cmp.GenRepContent;
import org.bouncycastle.asn1.cmp.InfoTypeAndValue;
import org.bouncycastle.asn1.cmp.PKIBody;
import org.bouncycastle.asn1.cmp.PKIFailureInfo;
import org.bouncycastle.asn1.cmp.PKIStatus;
import org.bouncycastle.asn1.cmp.PKIStatusInfo;
import org.bouncycastle.asn1.cmp.RevDetails;
import org.bouncycastle.asn1.cmp.RevRepContentBuilder;
import org.bouncycastle.asn1.cmp.RevReqContent;
import org.bouncycastle.asn1.crmf.AttributeTypeAndValue;
import org.bouncycastle.asn1.crmf.CertId;
import org.bouncycastle.asn1.crmf.CertReqMessages;
import org.bouncycastle.asn1.crmf.CertReqMsg;
import org.bouncycastle.asn1.crmf.CertTemplate;
import org.bouncycastle.asn1.crmf.CertTemplateBuilder;
import org.bouncycastle.asn1.crmf.Controls;
import org.bouncycastle.asn1.pkcs.CertificationRequest;
import org.bouncycastle.asn1.x500.X500Name;
import org.bouncycastle.asn1.x509.AlgorithmIdentifier;
import org.bouncycastle.asn1.x509.CRLReason;
import org.bouncycastle.asn1.x509.Certificate;
import org.bouncycastle.asn1.x509.Extension;
import org.bouncycastle.asn1.x509.Extensions;
import org.bouncycastle.asn1.x9.X9ObjectIdentifiers;
import org.bouncycastle.cert.X509CertificateHolder;
import org.bouncycastle.cert.crmf.CertificateRequestMessage;
import org.bouncycastle.operator.ContentVerifierProvider;
import org.bouncycastle.operator.jcajce.JcaContentVerifierProviderBuilder;
import org.bouncycastle.pkcs.PKCS10CertificationRequest;

/** What each request asks for, judged and done. */
final class Requests {
  private static final String IT = "1.3.6.1.5.5.7.4.";
  private static final String REG_CTRL_OLD_CERT_ID = "1.3.6.1.5.5.7.5.1.5";
  private static final String REG_CTRL_ALG_ID = "1.3.6.1.5.5.7.5.1.11";

  private final Authority authority;
  private final Books books;

  Requests(Authority authority, Books books) {
    this.authority = authority;
    this.books = books;
  }

  static boolean enrolls(PKIBody body) {
    switch (body.getType()) {
      case PKIBody.TYPE_INIT_REQ:
      case PKIBody.TYPE_CERT_REQ:
      case PKIBody.TYPE_KEY_UPDATE_REQ:
      case PKIBody.TYPE_P10_CERT_REQ:
        return true;
      default:
        return false;
    }
  }

  /** RFC 9483, 4.1.1 and 4.1.4. */
  static BigInteger certReqId(String operation) {
    return BigInteger.valueOf(operation.equals("p10cr") ? -1 : 0);
  }

  X509CertificateHolder issue(PKIBody body, Gate.Client client) throws Exception {
    return body.getType() == PKIBody.TYPE_P10_CERT_REQ ? issuePkcs10(body) : issueCrmf(body, client);
  }

  private static ContentVerifierProvider verifier(org.bouncycastle.asn1.x509.SubjectPublicKeyInfo key) throws Exception {
    return new JcaContentVerifierProviderBuilder().setProvider("BC").build(key);
  }

  private X509CertificateHolder issuePkcs10(PKIBody body) throws Exception {
    PKCS10CertificationRequest request = new PKCS10CertificationRequest(CertificationRequest.getInstance(body.getContent()));
    if (!request.isSignatureValid(verifier(request.getSubjectPublicKeyInfo()))) {
      throw new Refusal(PKIFailureInfo.badPOP, "the request is not signed by its key");
    }
    return authority.issue(request.getSubject(), request.getSubjectPublicKeyInfo(), null);
  }

  private X509CertificateHolder issueCrmf(PKIBody body, Gate.Client client) throws Exception {
    CertReqMsg[] messages = CertReqMessages.getInstance(body.getContent()).toCertReqMsgArray();
    if (messages.length != 1) throw new Refusal(PKIFailureInfo.badRequest, "one CertReqMsg at a time");
    if (messages[0].getCertReq().getCertReqId().getValue().signum() != 0) {
      throw new Refusal(PKIFailureInfo.badRequest, "certReqId is 0");
    }
    if (body.getType() == PKIBody.TYPE_KEY_UPDATE_REQ) checkUpdate(messages[0], client);
    CertTemplate template = messages[0].getCertReq().getCertTemplate();
    if (template.getSubject() == null || template.getPublicKey() == null) {
      throw new Refusal(PKIFailureInfo.badCertTemplate, "a subject and a key are wanted");
    }
    CertificateRequestMessage request = new CertificateRequestMessage(messages[0]);
    boolean signed = request.hasProofOfPossession() && request.getProofOfPossessionType() == CertificateRequestMessage.popSigningKey;
    if (!signed || !request.isValidSigningKeyPOP(verifier(template.getPublicKey()))) {
      throw new Refusal(PKIFailureInfo.badPOP, "the request is not signed by its key");
    }
    return authority.issue(template.getSubject(), template.getPublicKey(), template.getExtensions());
  }

  /** A kur is signed by the certificate that it updates (RFC 9483, 4.1.3). */
  private static void checkUpdate(CertReqMsg message, Gate.Client client) throws Exception {
    if (client.certificate == null) throw new Refusal(PKIFailureInfo.wrongIntegrity, "a kur is signed");
    Controls controls = message.getCertReq().getControls();
    if (controls != null) {
      for (AttributeTypeAndValue control : controls.toAttributeTypeAndValueArray()) {
        if (!control.getType().getId().equals(REG_CTRL_OLD_CERT_ID)) continue;
        CertId old = CertId.getInstance(control.getValue());
        X500Name issuer = X500Name.getInstance(old.getIssuer().getName());
        boolean same = issuer.equals(client.certificate.getIssuer()) && old.getSerialNumber().getValue().equals(client.certificate.getSerialNumber());
        if (same) return;
      }
    }
    throw new Refusal(PKIFailureInfo.badCertId, "oldCertID does not name the signer's certificate");
  }

  /** Of rr and genm, which may have been waited for. */
  PKIBody answer(String id, PKIBody request) throws Exception {
    switch (request.getType()) {
      case PKIBody.TYPE_REVOCATION_REQ:
        return revoke(id, RevReqContent.getInstance(request.getContent()).toRevDetailsArray());
      case PKIBody.TYPE_GEN_MSG:
        return inform(GenMsgContent.getInstance(request.getContent()).toInfoTypeAndValueArray());
      default:
        throw new Refusal(PKIFailureInfo.badRequest, "this CA does not answer " + Message.BODIES[request.getType()]);
    }
  }

  private PKIBody revoke(String id, RevDetails[] details) throws Exception {
    if (details.length != 1) throw new Refusal(PKIFailureInfo.badRequest, "one RevDetails at a time");
    CertTemplate template = details[0].getCertDetails();
    boolean named = template.getSerialNumber() != null && authority.issuer.getSubject().equals(template.getIssuer());
    Books.Issued issued = named ? books.issued.get(template.getSerialNumber().getValue()) : null;
    PKIStatusInfo status;
    try {
      if (issued == null) throw new Refusal(PKIFailureInfo.badCertId, "this CA has issued no such certificate");
      revoke(id, issued.certificate, reason(details[0]));
      status = new PKIStatusInfo(PKIStatus.granted);
    } catch (Refusal refusal) {
      status = refusal.status();
    }
    return new PKIBody(PKIBody.TYPE_REVOCATION_REP, new RevRepContentBuilder().add(status).build());
  }

  private static int reason(RevDetails details) throws Exception {
    Extensions extensions = details.getCrlEntryDetails();
    Extension reason = extensions == null ? null : extensions.getExtension(Extension.reasonCode);
    return reason == null ? CRLReason.unspecified : ASN1Enumerated.getInstance(reason.getParsedValue()).intValueExact();
  }

  private void revoke(String id, X509CertificateHolder certificate, int reason) throws Exception {
    Books.Revoked before = books.revoked.get(certificate.getSerialNumber());
    boolean held = before != null && before.reason == CRLReason.certificateHold;
    if (reason == CRLReason.removeFromCRL) {
      if (!held) throw new Refusal(PKIFailureInfo.badRequest, "the certificate is not on hold");
      books.add("revived", id, "rr", certificate, "");
    } else {
      if (before != null && !held) throw new Refusal(PKIFailureInfo.certRevoked, "the certificate is revoked already");
      books.add("revoked", id, "rr", certificate, Integer.toString(reason));
    }
    authority.writeCrl();
  }

  private PKIBody inform(InfoTypeAndValue[] questions) throws Exception {
    if (questions.length != 1) throw new Refusal(PKIFailureInfo.badRequest, "one question at a time");
    String type = questions[0].getInfoType().getId();
    if (!type.startsWith(IT)) throw new Refusal(PKIFailureInfo.badRequest, "this CA knows nothing of " + type);
    switch (type.substring(IT.length())) {
      case "17":
        return information("17", new DERSequence(new ASN1Encodable[] {
          new CMPCertificate(authority.issuer.toASN1Structure()), new CMPCertificate(authority.root.toASN1Structure()),
        }));
      case "19":
        return information("19", template());
      case "20":
        Certificate old = Certificate.getInstance(questions[0].getInfoValue());
        boolean ours = old.equals(authority.root.toASN1Structure());
        return information("18", ours ? authority.rootUpdate() : null);
      case "22":
        ASN1Sequence.getInstance(questions[0].getInfoValue());
        return information("23", new DERSequence(authority.crl().toASN1Structure()));
      default:
        throw new Refusal(PKIFailureInfo.badRequest, "this CA knows nothing of " + type);
    }
  }

  private static PKIBody information(String type, ASN1Encodable value) {
    ASN1ObjectIdentifier oid = new ASN1ObjectIdentifier(IT + type);
    InfoTypeAndValue info = value == null ? new InfoTypeAndValue(oid) : new InfoTypeAndValue(oid, value);
    return new PKIBody(PKIBody.TYPE_GEN_REP, new GenRepContent(info));
  }

  /** CertReqTemplateContent (RFC 9483, 4.3.3): a common name is to be filled in, the key is on P-256. */
  private static ASN1Encodable template() {
    CertTemplate template = new CertTemplateBuilder().setSubject(new X500Name("O=abide tests,CN=")).build();
    AlgorithmIdentifier curve = new AlgorithmIdentifier(X9ObjectIdentifiers.id_ecPublicKey, X9ObjectIdentifiers.prime256v1);
    List<ASN1Encodable> key = new ArrayList<>();
    key.add(new ASN1ObjectIdentifier(REG_CTRL_ALG_ID));
    key.add(curve);
    ASN1Encodable control = new DERSequence(key.toArray(new ASN1Encodable[0]));
    return new DERSequence(new ASN1Encodable[] {template, new DERSequence(control)});
  }
}
