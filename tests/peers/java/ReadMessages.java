import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.bouncycastle.asn1.ASN1Encodable;
import org.bouncycastle.asn1.ASN1ObjectIdentifier;
import org.bouncycastle.asn1.ASN1Primitive;
import org.bouncycastle.asn1.ASN1Sequence;
import org.bouncycastle.asn1.cmp.*;
import org.bouncycastle.asn1.cms.EncryptedContentInfo;
import org.bouncycastle.asn1.cms.EnvelopedData;
import org.bouncycastle.asn1.cms.RecipientInfo;
import org.bouncycastle.asn1.crmf.*;
import org.bouncycastle.asn1.pkcs.CertificationRequest;
import org.bouncycastle.asn1.x509.AlgorithmIdentifier;
import org.bouncycastle.asn1.x509.Certificate;
import org.bouncycastle.asn1.x509.CertificateList;

/** Reads messages down to their leaves, because Bouncy Castle looks at a field only when it is
 * asked for, and writes them again. Arguments: files in DER. Prints for each its name, a tab,
 * and what it found in the notation of the index, or `refused` and why. */
public final class ReadMessages {
  public static void main(String[] files) throws Exception {
    PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
    for (String file : files) {
      byte[] der = Files.readAllBytes(Path.of(file));
      String found;
      try {
        PKIMessage message = PKIMessage.getInstance(ASN1Primitive.fromByteArray(der));
        List<String> words = new ArrayList<>();
        message(message, words);
        boolean same = Arrays.equals(message.getEncoded("DER"), der);
        found = same ? String.join(" ", words) : "changed when written back";
      } catch (Exception | StackOverflowError refusal) {
        found = "refused: " + String.valueOf(refusal).replaceAll("[\\r\\n\\t]+", " ");
      }
      out.println(Path.of(file).getFileName() + "\t" + found);
    }
  }

  private static void message(PKIMessage message, List<String> words) throws Exception {
    PKIHeader header = message.getHeader();
    words.add("pvno=" + header.getPvno().intValueExact());
    header.getSender().getName();
    header.getRecipient().getName();
    if (header.getMessageTime() != null) header.getMessageTime().getDate();
    if (header.getProtectionAlg() != null) words.add("protection=" + header.getProtectionAlg().getAlgorithm());
    if (header.getFreeText() != null) words.add("freeText=" + text(header.getFreeText()));
    infos(header.getGeneralInfo(), words);
    if (message.getExtraCerts() != null) {
      for (CMPCertificate certificate : message.getExtraCerts()) certificate(certificate, words);
    }
    PKIBody body = message.getBody();
    words.add("body=" + Message.BODIES[body.getType()]);
    content(body.getType(), body.getContent(), words);
  }

  private static void content(int type, ASN1Encodable content, List<String> words) throws Exception {
    switch (type) {
      case PKIBody.TYPE_INIT_REQ: case PKIBody.TYPE_CERT_REQ: case PKIBody.TYPE_KEY_UPDATE_REQ:
      case PKIBody.TYPE_KEY_RECOVERY_REQ: case PKIBody.TYPE_CROSS_CERT_REQ:
        for (CertReqMsg request : CertReqMessages.getInstance(content).toCertReqMsgArray()) request(request, words);
        break;
      case PKIBody.TYPE_INIT_REP: case PKIBody.TYPE_CERT_REP: case PKIBody.TYPE_KEY_UPDATE_REP:
      case PKIBody.TYPE_CROSS_CERT_REP: {
        CertRepMessage response = CertRepMessage.getInstance(content);
        if (response.getCaPubs() != null) for (CMPCertificate certificate : response.getCaPubs()) certificate(certificate, words);
        for (CertResponse one : response.getResponse()) {
          words.add("certReqId=" + one.getCertReqId().getValue());
          status(one.getStatus(), words);
          if (one.getCertifiedKeyPair() != null) pair(one.getCertifiedKeyPair(), words);
        }
        break;
      }
      case PKIBody.TYPE_P10_CERT_REQ:
        words.add("subject=" + CertificationRequest.getInstance(content).getCertificationRequestInfo().getSubject());
        break;
      case PKIBody.TYPE_POPO_CHALL:
        for (Challenge challenge : POPODecKeyChallContent.getInstance(content).toChallengeArray()) {
          if (challenge.getOwf() != null) words.add("owf=" + challenge.getOwf().getAlgorithm());
          words.add("challenge=" + challenge.getWitness().length + "+" + challenge.getChallenge().length);
        }
        break;
      case PKIBody.TYPE_POPO_REP:
        words.add("numbers=" + Arrays.toString(POPODecKeyRespContent.getInstance(content).toASN1IntegerArray()).replace(" ", ""));
        break;
      case PKIBody.TYPE_KEY_RECOVERY_REP: {
        KeyRecRepContent recovered = KeyRecRepContent.getInstance(content);
        status(recovered.getStatus(), words);
        if (recovered.getNewSigCert() != null) certificate(recovered.getNewSigCert(), words);
        if (recovered.getCaCerts() != null) for (CMPCertificate certificate : recovered.getCaCerts()) certificate(certificate, words);
        if (recovered.getKeyPairHist() != null) for (CertifiedKeyPair pair : recovered.getKeyPairHist()) pair(pair, words);
        break;
      }
      case PKIBody.TYPE_REVOCATION_REQ:
        for (RevDetails details : RevReqContent.getInstance(content).toRevDetailsArray()) {
          words.add("serial=" + details.getCertDetails().getSerialNumber());
          if (details.getCrlEntryDetails() != null) words.add("entryDetails=" + details.getCrlEntryDetails().getExtensionOIDs().length);
        }
        break;
      case PKIBody.TYPE_REVOCATION_REP: {
        RevRepContent response = RevRepContent.getInstance(content);
        for (PKIStatusInfo status : response.getStatus()) status(status, words);
        if (response.getRevCerts() != null) for (CertId id : response.getRevCerts()) words.add("serial=" + id.getSerialNumber().getValue());
        if (response.getCrls() != null) words.add("crls=" + response.getCrls().length);
        break;
      }
      case PKIBody.TYPE_CA_KEY_UPDATE_ANN: {
        CAKeyUpdAnnContent update = CAKeyUpdAnnContent.getInstance(content);
        for (CMPCertificate certificate : new CMPCertificate[] {update.getOldWithNew(), update.getNewWithOld(), update.getNewWithNew()}) {
          certificate(certificate, words);
        }
        break;
      }
      case PKIBody.TYPE_CERT_ANN:
        certificate(CMPCertificate.getInstance(content), words);
        break;
      case PKIBody.TYPE_REVOCATION_ANN: {
        RevAnnContent announced = RevAnnContent.getInstance(content);
        words.add("serial=" + announced.getCertId().getSerialNumber().getValue());
        words.add("willBeRevokedAt=" + announced.getWillBeRevokedAt().getTime());
        announced.getBadSinceDate().getDate();
        break;
      }
      case PKIBody.TYPE_CRL_ANN:
        words.add("crls=" + CRLAnnContent.getInstance(content).getCertificateLists().length);
        break;
      case PKIBody.TYPE_CONFIRM:
        PKIConfirmContent.getInstance(content);
        break;
      case PKIBody.TYPE_NESTED:
        for (PKIMessage inner : PKIMessages.getInstance(content).toPKIMessageArray()) message(inner, words);
        break;
      case PKIBody.TYPE_GEN_MSG:
        infos(GenMsgContent.getInstance(content).toInfoTypeAndValueArray(), words);
        break;
      case PKIBody.TYPE_GEN_REP:
        infos(GenRepContent.getInstance(content).toInfoTypeAndValueArray(), words);
        break;
      case PKIBody.TYPE_ERROR: {
        ErrorMsgContent error = ErrorMsgContent.getInstance(content);
        status(error.getPKIStatusInfo(), words);
        if (error.getErrorCode() != null) words.add("errorCode=" + error.getErrorCode().getValue());
        if (error.getErrorDetails() != null) words.add("errorDetails=" + text(error.getErrorDetails()));
        break;
      }
      case PKIBody.TYPE_CERT_CONFIRM:
        for (CertStatus status : CertConfirmContent.getInstance(content).toCertStatusArray()) {
          words.add("certReqId=" + status.getCertReqId().getValue());
          if (status.getHashAlg() != null) words.add("hashAlg=" + status.getHashAlg().getAlgorithm());
          if (status.getStatusInfo() != null) status(status.getStatusInfo(), words);
        }
        break;
      case PKIBody.TYPE_POLL_REQ:
        words.add("certReqId=" + Arrays.toString(PollReqContent.getInstance(content).getCertReqIdValues()).replace(" ", ""));
        break;
      case PKIBody.TYPE_POLL_REP: {
        PollRepContent later = PollRepContent.getInstance(content);
        for (int i = 0; i < later.size(); i++) {
          words.add("certReqId=" + later.getCertReqId(i).getValue() + " checkAfter=" + later.getCheckAfter(i).getValue());
          if (later.getReason(i) != null) words.add("reason=" + text(later.getReason(i)));
        }
        break;
      }
      default:
        throw new IllegalArgumentException("body " + type);
    }
  }

  private static void request(CertReqMsg message, List<String> words) throws Exception {
    CertRequest request = message.getCertReq();
    words.add("certReqId=" + request.getCertReqId().getValue());
    CertTemplate template = request.getCertTemplate();
    if (template.getSubject() != null) words.add("subject=" + template.getSubject());
    if (template.getPublicKey() != null) words.add("key=" + template.getPublicKey().getAlgorithm().getAlgorithm());
    if (template.getIssuer() != null) words.add("issuer=" + template.getIssuer());
    if (template.getExtensions() != null) words.add("extensions=" + template.getExtensions().getExtensionOIDs().length);
    if (request.getControls() != null) {
      for (AttributeTypeAndValue control : request.getControls().toAttributeTypeAndValueArray()) {
        words.add("control=" + control.getType());
        if (control.getType().equals(CMPObjectIdentifiers.regCtrl_oldCertID)) {
          words.add("oldCertID=" + CertId.getInstance(control.getValue()).getSerialNumber().getValue());
        }
      }
    }
    if (message.getRegInfo() != null) words.add("regInfo=" + message.getRegInfo().length);
    ProofOfPossession popo = message.getPopo();
    if (popo == null) return;
    switch (popo.getType()) {
      case ProofOfPossession.TYPE_RA_VERIFIED:
        words.add("popo=raVerified");
        break;
      case ProofOfPossession.TYPE_SIGNING_KEY: {
        POPOSigningKey key = POPOSigningKey.getInstance(popo.getObject());
        words.add("popo=signature:" + key.getAlgorithmIdentifier().getAlgorithm());
        if (key.getPoposkInput() != null) words.add("poposkInput=" + key.getPoposkInput().getPublicKey().getAlgorithm().getAlgorithm());
        break;
      }
      default: {
        POPOPrivKey key = POPOPrivKey.getInstance(popo.getObject());
        String type = popo.getType() == ProofOfPossession.TYPE_KEY_ENCIPHERMENT ? "keyEncipherment" : "keyAgreement";
        words.add("popo=" + type + ":" + key.getType());
        if (key.getType() == POPOPrivKey.encryptedKey) enveloped(EnvelopedData.getInstance(key.getValue()), words);
      }
    }
  }

  private static void pair(CertifiedKeyPair pair, List<String> words) throws Exception {
    CertOrEncCert either = pair.getCertOrEncCert();
    if (either.getCertificate() != null) certificate(either.getCertificate(), words);
    if (either.getEncryptedCert() != null) encrypted("encryptedCert", either.getEncryptedCert(), words);
    if (pair.getPrivateKey() != null) encrypted("privateKey", pair.getPrivateKey(), words);
    if (pair.getPublicationInfo() != null) words.add("publication=" + pair.getPublicationInfo().getAction());
  }

  private static void encrypted(String name, EncryptedKey key, List<String> words) throws Exception {
    if (key.isEncryptedValue()) {
      EncryptedValue value = EncryptedValue.getInstance(key.getValue());
      words.add(name + "=encryptedValue:" + value.getEncValue().getOctets().length);
    } else {
      words.add(name + "=envelopedData");
      enveloped(EnvelopedData.getInstance(key.getValue()), words);
    }
  }

  private static void enveloped(EnvelopedData data, List<String> words) throws Exception {
    for (ASN1Encodable info : data.getRecipientInfos()) {
      words.add("recipient=" + RecipientInfo.getInstance(info).getInfo().getClass().getSimpleName());
    }
    EncryptedContentInfo content = data.getEncryptedContentInfo();
    words.add("content=" + content.getContentType());
  }

  /** The tests put a SEQUENCE where a certificate of no interest stands: only a real one is looked into. */
  private static void certificate(CMPCertificate certificate, List<String> words) throws Exception {
    Certificate x509 = certificate.getX509v3PKCert();
    words.add("serial=" + x509.getSerialNumber().getValue().toString(16));
    x509.getSubject().getRDNs();
    x509.getStartDate().getDate();
  }

  private static void status(PKIStatusInfo status, List<String> words) {
    words.add("status=" + status.getStatus());
    if (status.getStatusString() != null) words.add("statusString=" + text(status.getStatusString()));
    if (status.getFailInfo() != null) words.add("failInfo=" + new PKIFailureInfo(status.getFailInfo()).intValue());
  }

  private static void infos(InfoTypeAndValue[] infos, List<String> words) throws Exception {
    if (infos == null) return;
    for (InfoTypeAndValue info : infos) {
      words.add("info=" + info.getInfoType());
      ASN1ObjectIdentifier type = info.getInfoType();
      ASN1Encodable value = info.getInfoValue();
      if (value == null) continue;
      if (type.equals(CMPObjectIdentifiers.id_it_rootCaKeyUpdate)) {
        certificate(RootCaKeyUpdateContent.getInstance(value).getNewWithNew(), words);
      } else if (type.equals(CMPObjectIdentifiers.id_it_certReqTemplate)) {
        CertReqTemplateContent.getInstance(value).getCertTemplate();
      } else if (type.equals(CMPObjectIdentifiers.id_it_crlStatusList)) {
        for (ASN1Encodable one : ASN1Sequence.getInstance(value)) CRLStatus.getInstance(one).getSource();
      } else if (type.equals(CMPObjectIdentifiers.id_it_caCerts)) {
        for (ASN1Encodable one : ASN1Sequence.getInstance(value)) certificate(CMPCertificate.getInstance(one), words);
      } else if (type.equals(CMPObjectIdentifiers.id_it_crls)) {
        for (ASN1Encodable one : ASN1Sequence.getInstance(value)) CertificateList.getInstance(one).getIssuer();
      } else if (type.equals(CMPObjectIdentifiers.it_keyPairParamRep)) {
        AlgorithmIdentifier.getInstance(value).getAlgorithm();
      }
    }
  }

  private static String text(PKIFreeText text) {
    List<String> lines = new ArrayList<>();
    for (int i = 0; i < text.size(); i++) lines.add(text.getStringAtUTF8(i).getString().replace(' ', '_'));
    return String.join("|", lines);
  }
}
