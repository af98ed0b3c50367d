import java.math.BigInteger;
import java.nio.file.Path;
import java.security.KeyFactory;
import java.security.KeyPair;
import java.security.KeyPairGenerator;
import java.security.MessageDigest;
import java.security.PrivateKey;
import java.security.PublicKey;
import java.security.Security;
import java.security.Signature;
import java.security.spec.X509EncodedKeySpec;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Date;
import java.util.List;
import org.bouncycastle.asn1.*;
import org.bouncycastle.asn1.cmp.*;
import org.bouncycastle.asn1.cms.EnvelopedData;
import org.bouncycastle.asn1.crmf.*;
import org.bouncycastle.asn1.x500.X500Name;
import org.bouncycastle.asn1.x509.*;
import org.bouncycastle.cert.X509CertificateHolder;
import org.bouncycastle.cms.CMSAlgorithm;
import org.bouncycastle.cms.CMSEnvelopedDataGenerator;
import org.bouncycastle.cms.CMSProcessableByteArray;
import org.bouncycastle.cms.RecipientInfoGenerator;
import org.bouncycastle.cms.jcajce.JceCMSContentEncryptorBuilder;
import org.bouncycastle.cms.jcajce.JceKeyAgreeRecipientInfoGenerator;
import org.bouncycastle.cms.jcajce.JceKeyTransRecipientInfoGenerator;
import org.bouncycastle.cms.jcajce.JcePasswordRecipientInfoGenerator;
import org.bouncycastle.jce.provider.BouncyCastleProvider;
import org.bouncycastle.util.encoders.Hex;

/** Every body, every proof of possession and every protection that Bouncy Castle can make.
 * Arguments: the folder of the PKI, the folder to write to. Prints the lines of the index. */
public final class MakeVectors {
  private static final String SECRET = "a secret for Bouncy Castle";
  private static final String SHA1 = "1.3.14.3.2.26";
  private static final String SHA256 = "2.16.840.1.101.3.4.2.1";
  private static final String SHA384 = "2.16.840.1.101.3.4.2.2";
  private static final String SHA512 = "2.16.840.1.101.3.4.2.3";
  private static final String SHA224 = "2.16.840.1.101.3.4.2.4";
  private static final String HMAC = "1.2.840.113549.2.";
  private static final String AES128_CBC = "2.16.840.1.101.3.4.1.2";
  private static final String RSA = "1.2.840.113549.1.1.1";
  private static final String IT = "1.3.6.1.5.5.7.4.";
  private static final String REG_CTRL = "1.3.6.1.5.5.7.5.1.";
  private static final String REG_INFO = "1.3.6.1.5.5.7.5.2.";
  /** Shorter than a certificate, where only that something is encrypted matters. */
  private static final byte[] HIDDEN = Hex.decode("00112233445566778899aabbccddeeff");

  private final Pki pki;
  private final Path out;
  private final Protection pbm;
  private final X509CertificateHolder certificate;
  private final SubjectPublicKeyInfo encryptionKey;

  private MakeVectors(Path folder, Path out) throws Exception {
    this.pki = new Pki(folder);
    this.out = out;
    this.pbm = Protection.pbm("SHA-256 HMAC-SHA256", SHA256, HMAC + 9, 100, SECRET);
    this.certificate = pki.certificate("new");
    this.encryptionKey = pki.certificate("encrypt").getSubjectPublicKeyInfo();
  }

  public static void main(String[] arguments) throws Exception {
    Security.addProvider(new BouncyCastleProvider());
    MakeVectors vectors = new MakeVectors(Path.of(arguments[0]), Path.of(arguments[1]));
    vectors.protections();
    vectors.proofs();
    vectors.requests();
    vectors.responses();
    vectors.encryptedKeys();
    vectors.revocations();
    vectors.announcements();
    vectors.challenges();
    vectors.confirmations();
    vectors.information();
    vectors.nested();
  }

  // Protections, all over the same small body.

  private void protections() throws Exception {
    Protection[] macs = {
      Protection.pbm("SHA-1 HMAC-SHA1", SHA1, "1.3.6.1.5.5.8.1.2", 100, SECRET),
      Protection.pbm("SHA-224 HMAC-SHA224", SHA224, HMAC + 8, 100, SECRET),
      Protection.pbm("SHA-384 HMAC-SHA384", SHA384, HMAC + 10, 100, SECRET),
      Protection.pbm("SHA-512 HMAC-SHA512", SHA512, HMAC + 11, 100, SECRET),
      Protection.pbm("SHA-256 HMAC-SHA512", SHA256, HMAC + 11, 100, SECRET),
      Protection.pbm("SHA-512 HMAC-SHA224", SHA512, HMAC + 8, 100, SECRET),
      Protection.pbmac1("SHA-256", "SHA-256", 32, 100, SECRET),
      Protection.pbmac1("SHA-512", "SHA-256", 32, 100, SECRET),
      Protection.pbmac1("SHA-224", "SHA-384", 48, 100, SECRET),
      Protection.pbmac1("SHA-384", "SHA-512", 20, 100, SECRET),
      Protection.hmac("SHA-256", HMAC + 9, "HmacSHA256", SECRET),
    };
    for (Protection mac : macs) confirm("protection-" + mac.name).by(mac).write(out);
    confirm("protection-PBMAC1 with PBES2").by(Protection.pbmac1NamedPbes2(SECRET)).refused().write(out);
    AlgorithmIdentifier dhBased =
        new AlgorithmIdentifier(CMPObjectIdentifiers.dhBasedMac,
            new DHBMParameter(Protection.algorithm(SHA256), Protection.algorithmWithNull(HMAC + 9)));
    confirm("protection-DHBasedMac").by(Protection.meaningless("DHBasedMac", dhBased, 32)).refused().writeRaw(out);
    String[][] signatures = {
      {"RSA PKCS#1 SHA-224", "SHA224withRSA", "rsa"},
      {"RSA PKCS#1 SHA-256", "SHA256withRSA", "rsa"},
      {"RSA PKCS#1 SHA-384", "SHA384withRSA", "rsa"},
      {"RSA PKCS#1 SHA-512", "SHA512withRSA", "rsa"},
      {"RSA-PSS SHA-256", "SHA256withRSAandMGF1", "rsa"},
      {"RSA-PSS SHA-384", "SHA384withRSAandMGF1", "rsa"},
      {"RSA-PSS SHA-512", "SHA512withRSAandMGF1", "rsa"},
      {"ECDSA P-256 SHA-256", "SHA256withECDSA", "p256"},
      {"ECDSA P-256 SHA-512", "SHA512withECDSA", "p256"},
      {"ECDSA P-384 SHA-384", "SHA384withECDSA", "p384"},
      {"ECDSA P-384 SHA-256", "SHA256withECDSA", "p384"},
      {"ECDSA P-521 SHA-512", "SHA512withECDSA", "p521"},
      {"Ed25519", "Ed25519", "ed25519"},
      {"Ed448", "Ed448", "ed448"},
    };
    for (String[] row : signatures) {
      Protection signature = Protection.signature(row[0], row[1], pki.key(row[2]), pki.certificate(row[2]));
      confirm("protection-" + row[0]).by(signature).write(out);
    }
    confirm("protection-none").write(out);
  }

  /** A pkiConf with a name that can be a file's. */
  private Message confirm(String name) {
    String plain = name.replace("#", "").replace(' ', '-');
    return new Message(plain, PKIBody.TYPE_CONFIRM, new PKIConfirmContent()).answers();
  }

  // Proofs of possession, each in an ir.

  private void proofs() throws Exception {
    SubjectPublicKeyInfo key = certificate.getSubjectPublicKeyInfo();
    CertRequest request = request(0, key);
    ir("popo-raverified", request, new ProofOfPossession()).popo("raVerified").write(out);
    AlgorithmIdentifier ecdsa = Protection.algorithm("1.2.840.10045.4.3.2");
    ProofOfPossession signature =
        new ProofOfPossession(new POPOSigningKey(null, ecdsa, sign(request.getEncoded("DER"))));
    ir("popo-signature", request, signature).popo("signature").write(out);

    CertRequest nameless = new CertRequest(0, new CertTemplateBuilder().setPublicKey(key).build(), null);
    POPOSigningKeyInput sender = new POPOSigningKeyInput(new GeneralName(new X500Name("CN=popo sender")), key);
    signature = new ProofOfPossession(new POPOSigningKey(sender, ecdsa, sign(sender.getEncoded("DER"))));
    ir("popo-signature-sender", nameless, signature).popo("signature poskInput").write(out);
    PKMACValue mac = publicKeyMac(key);
    POPOSigningKeyInput macInput = new POPOSigningKeyInput(mac, key);
    signature = new ProofOfPossession(new POPOSigningKey(macInput, ecdsa, sign(macInput.getEncoded("DER"))));
    ir("popo-signature-mac", nameless, signature).popo("signature poskInput").write(out);

    CertRequest encryption = request(0, encryptionKey);
    int encipherment = ProofOfPossession.TYPE_KEY_ENCIPHERMENT;
    int agreement = ProofOfPossession.TYPE_KEY_AGREEMENT;
    for (int type : new int[] {encipherment, agreement}) {
      String name = type == encipherment ? "keyEncipherment" : "keyAgreement";
      CertRequest of = type == encipherment ? encryption : request;
      POPOPrivKey encrCert = new POPOPrivKey(SubsequentMessage.encrCert);
      ir("popo-" + name + "-encrCert", of, new ProofOfPossession(type, encrCert)).popo(name + " encrCert").write(out);
      POPOPrivKey challenge = new POPOPrivKey(SubsequentMessage.challengeResp);
      ir("popo-" + name + "-challengeResp", of, new ProofOfPossession(type, challenge))
          .popo(name + " challengeResp").write(out);
      // No constructors for these.
      DERBitString bits = new DERBitString(HIDDEN);
      rawProof(name, "thisMessage", type, of, new DERTaggedObject(false, 0, bits));
      EnvelopedData data = enveloped(new JcePasswordRecipientInfoGenerator(CMSAlgorithm.AES128_CBC, SECRET.toCharArray()));
      rawProof(name, "encryptedKey", type, of, new DERTaggedObject(false, 4, data));
    }
    rawProof("keyAgreement", "dhMAC", agreement, request, new DERTaggedObject(false, 2, new DERBitString(HIDDEN)));
    ir("popo-keyAgreement-agreeMAC", request, new ProofOfPossession(agreement, new POPOPrivKey(mac)))
        .pvno(3).popo("keyAgreement agreeMAC").write(out);
  }

  private void rawProof(String name, String choice, int type, CertRequest request, ASN1Encodable key) throws Exception {
    ASN1Sequence one = new DERSequence(new ASN1Encodable[] {request, new DERTaggedObject(true, type, key)});
    Message message = new Message("popo-" + name + "-" + choice, PKIBody.TYPE_INIT_REQ, new DERSequence(one));
    if (choice.equals("encryptedKey")) message.pvno(3);
    message.by(pbm).known("certReqId", 0).known("subject", "CN=subject,O=vectors").popo(name + " " + choice).writeRaw(out);
  }

  private Message ir(String name, CertRequest request, ProofOfPossession popo) {
    Message message = new Message(name, PKIBody.TYPE_INIT_REQ, new CertReqMessages(new CertReqMsg(request, popo, null)));
    message.by(pbm).known("certReqId", request.getCertReqId());
    if (request.getCertTemplate().getSubject() != null) message.known("subject", "CN=subject,O=vectors");
    return message;
  }

  private static CertRequest request(int certReqId, SubjectPublicKeyInfo key, AttributeTypeAndValue... controls) {
    CertTemplateBuilder template = new CertTemplateBuilder();
    template.setSubject(new X500Name("CN=subject,O=vectors")).setPublicKey(key);
    return new CertRequest(certReqId, template.build(), controls.length == 0 ? null : new Controls(controls));
  }

  private DERBitString sign(byte[] data) throws Exception {
    Signature signature = Signature.getInstance("SHA256withECDSA", "BC");
    signature.initSign(pki.key("new"));
    signature.update(data);
    return new DERBitString(signature.sign());
  }

  private PKMACValue publicKeyMac(SubjectPublicKeyInfo key) throws Exception {
    byte[] mac = pbm.protect(key.getEncoded("DER"));
    return new PKMACValue(pbm.algorithm(), new DERBitString(mac));
  }

  // Requests with everything that can be in one.

  private void requests() throws Exception {
    SubjectPublicKeyInfo key = certificate.getSubjectPublicKeyInfo();
    ProofOfPossession verified = new ProofOfPossession();
    CertId old = new CertId(new GeneralName(new X500Name("CN=issuer")), BigInteger.valueOf(0x1234));
    EncryptedValue hidden =
        new EncryptedValue(null, Protection.algorithm(AES128_CBC), new DERBitString(HIDDEN), null, null, new DERBitString(HIDDEN));
    CertTemplate alternative = new CertTemplateBuilder().setSubject(new X500Name("CN=alternative")).build();
    AttributeTypeAndValue[] controls = {
      new AttributeTypeAndValue(REG_CTRL + 1, new DERUTF8String("token")),
      new AttributeTypeAndValue(REG_CTRL + 2, new DERUTF8String("authenticator")),
      new AttributeTypeAndValue(REG_CTRL + 3,
          new PKIPublicationInfo(new SinglePubInfo(SinglePubInfo.web, new GeneralName(6, "http://publish")))),
      new AttributeTypeAndValue(REG_CTRL + 4, new PKIArchiveOptions(new EncryptedKey(hidden))),
      new AttributeTypeAndValue(REG_CTRL + 5, old),
      new AttributeTypeAndValue(REG_CTRL + 6, key),
      new AttributeTypeAndValue(REG_CTRL + 7, alternative),
    };
    AttributeTypeAndValue[] information = {
      new AttributeTypeAndValue(REG_INFO + 1, new DERUTF8String("version?1%")),
      new AttributeTypeAndValue(REG_INFO + 2, request(7, key)),
    };
    CertReqMsg full = new CertReqMsg(request(1, key, controls), verified, information);
    CertTemplateBuilder template = new CertTemplateBuilder();
    template.setVersion(2).setSerialNumber(new ASN1Integer(77)).setSigningAlg(Protection.algorithm("1.2.840.10045.4.3.2"));
    template.setIssuer(new X500Name("CN=issuer"));
    template.setValidity(new OptionalValidity(new Time(new Date(1767225600000L)), new Time(new Date(2524608000000L))));
    template.setSubject(new X500Name("CN=subject,O=vectors")).setPublicKey(key);
    template.setIssuerUID(new DERBitString(HIDDEN)).setSubjectUID(new DERBitString(HIDDEN));
    template.setExtensions(
        new Extensions(new Extension(Extension.keyUsage, true, new KeyUsage(KeyUsage.digitalSignature).getEncoded("DER"))));
    CertReqMsg whole = new CertReqMsg(new CertRequest(2, template.build(), null), null, null);
    new Message("cr-controls", PKIBody.TYPE_CERT_REQ, new CertReqMessages(new CertReqMsg[] {full, whole}))
        .by(pbm).popo("raVerified").known("certReqId", "1,2").known("subject", "CN=subject,O=vectors")
        .known("controls", "1,2,3,4,5,6,7").known("oldCertID", "1234").write(out);

    new Message("p10cr", PKIBody.TYPE_P10_CERT_REQ, pki.request("new").toASN1Structure())
        .by(pbm).known("subject", "CN=new,O=vectors").write(out);
    AttributeTypeAndValue oldCertId = new AttributeTypeAndValue(REG_CTRL + 5, old);
    int[] types = {PKIBody.TYPE_KEY_UPDATE_REQ, PKIBody.TYPE_KEY_RECOVERY_REQ, PKIBody.TYPE_CROSS_CERT_REQ};
    for (int type : types) {
      CertReqMsg one = new CertReqMsg(request(0, key, oldCertId), verified, null);
      new Message(Message.BODIES[type], type, new CertReqMessages(one))
          .by(pbm).popo("raVerified").known("certReqId", 0).known("subject", "CN=subject,O=vectors")
          .known("controls", "5").known("oldCertID", "1234").write(out);
    }
  }

  // Responses.

  private void responses() throws Exception {
    int[] types = {PKIBody.TYPE_INIT_REP, PKIBody.TYPE_CERT_REP, PKIBody.TYPE_KEY_UPDATE_REP, PKIBody.TYPE_CROSS_CERT_REP};
    for (int type : types) {
      CertifiedKeyPair pair = new CertifiedKeyPair(new CertOrEncCert(cmp(certificate)));
      PKIStatusInfo status = new PKIStatusInfo(PKIStatus.grantedWithMods, new PKIFreeText(new String[] {"changed", "a bit"}));
      CertResponse response = new CertResponse(new ASN1Integer(0), status, pair, new DEROctetString("info".getBytes()));
      CMPCertificate[] anchors = type == PKIBody.TYPE_INIT_REP ? new CMPCertificate[] {cmp(pki.certificate("root"))} : null;
      Message message = new Message(Message.BODIES[type], type, new CertRepMessage(anchors, new CertResponse[] {response}));
      if (anchors != null) message.known("caPubs", 1);
      message.by(pbm).answers().known("certReqId", 0).known("status", "grantedWithMods").known("statusString", "changed|a bit")
          .known("serial", "4711").write(out);
    }
  }

  private static CMPCertificate cmp(X509CertificateHolder certificate) {
    return new CMPCertificate(certificate.toASN1Structure());
  }

  /** Both forms of EncryptedKey, each as a certificate and as a private key, with every kind of recipient. */
  private void encryptedKeys() throws Exception {
    EncryptedValue value =
        new EncryptedValue(
            Protection.algorithmWithNull(RSA), Protection.algorithm(AES128_CBC), new DERBitString(HIDDEN),
            Protection.algorithmWithNull(RSA), new DEROctetString("hint".getBytes()), new DERBitString(HIDDEN));
    KeyPairGenerator generator = KeyPairGenerator.getInstance("EC", "BC");
    generator.initialize(256);
    KeyPair originator = generator.generateKeyPair();
    PublicKey recipient =
        KeyFactory.getInstance("EC", "BC").generatePublic(new X509EncodedKeySpec(certificate.getSubjectPublicKeyInfo().getEncoded()));
    byte[] identifier = "recipient".getBytes();
    PublicKey rsa = KeyFactory.getInstance("RSA", "BC").generatePublic(new X509EncodedKeySpec(encryptionKey.getEncoded()));
    RecipientInfoGenerator transport = new JceKeyTransRecipientInfoGenerator(identifier, rsa).setProvider("BC");
    RecipientInfoGenerator agreement =
        new JceKeyAgreeRecipientInfoGenerator(
            CMSAlgorithm.ECDH_SHA256KDF, originator.getPrivate(), originator.getPublic(), CMSAlgorithm.AES128_WRAP)
            .addRecipient(identifier, recipient).setProvider("BC");
    RecipientInfoGenerator password =
        new JcePasswordRecipientInfoGenerator(CMSAlgorithm.AES128_CBC, SECRET.toCharArray()).setProvider("BC");

    PKIStatusInfo accepted = new PKIStatusInfo(PKIStatus.granted);
    String[] names = {"encryptedvalue", "enveloped-ktri", "enveloped-kari", "enveloped-pwri"};
    EncryptedKey[] keys = {
      new EncryptedKey(value), new EncryptedKey(enveloped(transport)), new EncryptedKey(enveloped(agreement)),
      new EncryptedKey(enveloped(password)),
    };
    for (int i = 0; i < keys.length; i++) {
      int pvno = i == 0 ? 2 : 3;
      String form = i == 0 ? "encryptedValue" : "envelopedData";
      CertifiedKeyPair withKey = new CertifiedKeyPair(new CertOrEncCert(cmp(certificate)), keys[i], null);
      CertResponse response = new CertResponse(new ASN1Integer(0), accepted, withKey, null);
      new Message("cp-privatekey-" + names[i], PKIBody.TYPE_CERT_REP, new CertRepMessage(null, new CertResponse[] {response}))
          .by(pbm).answers().pvno(pvno).known("certReqId", 0).known("status", "accepted").known("serial", "4711")
          .known("privateKey", form).write(out);
      CertifiedKeyPair hidden = new CertifiedKeyPair(new CertOrEncCert(keys[i]), (EncryptedKey) null, null);
      response = new CertResponse(new ASN1Integer(0), accepted, hidden, null);
      new Message("cp-encryptedcert-" + names[i], PKIBody.TYPE_CERT_REP, new CertRepMessage(null, new CertResponse[] {response}))
          .by(pbm).answers().pvno(pvno).known("certReqId", 0).known("status", "accepted").known("encryptedCert", form).write(out);
    }

    // KeyRecRepContent has no constructor.
    CertifiedKeyPair pair = new CertifiedKeyPair(new CertOrEncCert(cmp(certificate)), keys[0], null);
    ASN1Encodable[] recovered = {
      accepted, new DERTaggedObject(true, 0, cmp(certificate)),
      new DERTaggedObject(true, 1, new DERSequence(cmp(pki.certificate("root")))),
      new DERTaggedObject(true, 2, new DERSequence(pair)),
    };
    new Message("krp", PKIBody.TYPE_KEY_RECOVERY_REP, KeyRecRepContent.getInstance(new DERSequence(recovered)))
        .by(pbm).answers().known("status", "accepted").known("serial", "4711").write(out);
  }

  private static EnvelopedData enveloped(RecipientInfoGenerator recipient) throws Exception {
    CMSEnvelopedDataGenerator generator = new CMSEnvelopedDataGenerator();
    generator.addRecipientInfoGenerator(recipient);
    ASN1Encodable content =
        generator
            .generate(new CMSProcessableByteArray(HIDDEN), new JceCMSContentEncryptorBuilder(CMSAlgorithm.AES128_CBC).setProvider("BC").build())
            .toASN1Structure().getContent();
    // Into DER: the generator makes BER.
    return EnvelopedData.getInstance(ASN1Primitive.fromByteArray(content.toASN1Primitive().getEncoded("DER")));
  }

  // Revocation.

  private void revocations() throws Exception {
    CertTemplate template =
        new CertTemplateBuilder().setSerialNumber(new ASN1Integer(0x4711)).setIssuer(new X500Name("CN=issuer")).build();
    Extensions reason = new Extensions(new Extension(Extension.reasonCode, false, new ASN1Enumerated(1).getEncoded("DER")));
    new Message("rr", PKIBody.TYPE_REVOCATION_REQ, new RevReqContent(new RevDetails(template, reason)))
        .by(pbm).known("crlReason", 1).write(out);

    // One answer for each bit of PKIFailureInfo, in their order, and one without.
    int[] bits = {
      PKIFailureInfo.badAlg, PKIFailureInfo.badMessageCheck, PKIFailureInfo.badRequest, PKIFailureInfo.badTime,
      PKIFailureInfo.badCertId, PKIFailureInfo.badDataFormat, PKIFailureInfo.wrongAuthority, PKIFailureInfo.incorrectData,
      PKIFailureInfo.missingTimeStamp, PKIFailureInfo.badPOP, PKIFailureInfo.certRevoked, PKIFailureInfo.certConfirmed,
      PKIFailureInfo.wrongIntegrity, PKIFailureInfo.badRecipientNonce, PKIFailureInfo.timeNotAvailable,
      PKIFailureInfo.unacceptedPolicy, PKIFailureInfo.unacceptedExtension, PKIFailureInfo.addInfoNotAvailable,
      PKIFailureInfo.badSenderNonce, PKIFailureInfo.badCertTemplate, PKIFailureInfo.signerNotTrusted,
      PKIFailureInfo.transactionIdInUse, PKIFailureInfo.unsupportedVersion, PKIFailureInfo.notAuthorized,
      PKIFailureInfo.systemUnavail, PKIFailureInfo.systemFailure, PKIFailureInfo.duplicateCertReq,
    };
    CertId id = new CertId(new GeneralName(new X500Name("CN=issuer")), BigInteger.valueOf(0x4711));
    RevRepContentBuilder builder = new RevRepContentBuilder();
    List<String> numbers = new ArrayList<>();
    for (int i = 0; i < bits.length; i++) {
      builder.add(new PKIStatusInfo(PKIStatus.rejection, null, new PKIFailureInfo(bits[i])), id);
      numbers.add(Integer.toString(i));
    }
    builder.addCrl(pki.crl("root").toASN1Structure());
    new Message("rp-every-failinfo", PKIBody.TYPE_REVOCATION_REP, builder.build())
        .by(pbm).answers().known("failInfo", String.join(",", numbers)).known("status", "rejection").write(out);

    PKIStatusInfo all =
        new PKIStatusInfo(PKIStatus.rejection, new PKIFreeText(new String[] {"first line", "zweite Zeile: äöü", "третья"}),
            new PKIFailureInfo(Arrays.stream(bits).reduce(0, (a, b) -> a | b)));
    ErrorMsgContent error =
        new ErrorMsgContent(all, new ASN1Integer(new BigInteger("-123456789012345678901234567890")),
            new PKIFreeText(new String[] {"details", "in two lines"}));
    new Message("error", PKIBody.TYPE_ERROR, error)
        .by(pbm).answers().known("status", "rejection").known("failInfo", String.join(",", numbers))
        .known("statusString", "first line|zweite Zeile: äöü|третья").known("errorDetails", "details|in two lines")
        .known("errorCode", Hex.toHexString(new BigInteger("-123456789012345678901234567890").toByteArray())).write(out);
    for (PKIStatus status : new PKIStatus[] {PKIStatus.waiting, PKIStatus.revocationWarning, PKIStatus.revocationNotification, PKIStatus.keyUpdateWaiting}) {
      String[] names = {"accepted", "grantedWithMods", "rejection", "waiting", "revocationWarning", "revocationNotification", "keyUpdateWarning"};
      String name = names[((ASN1Integer) status.toASN1Primitive()).intValueExact()];
      new Message("error-" + name, PKIBody.TYPE_ERROR, new ErrorMsgContent(new PKIStatusInfo(status)))
          .answers().known("status", name).write(out);
    }
    RevAnnContent announced =
        new RevAnnContent(PKIStatus.revocationNotification, id, new ASN1GeneralizedTime("20260701000000Z"), new ASN1GeneralizedTime("20260601000000Z"), reason);
    new Message("rann", PKIBody.TYPE_REVOCATION_ANN, announced)
        .by(pbm).known("status", "revocationNotification").known("serial", "4711")
        .known("willBeRevokedAt", "2026-07-01T00:00:00Z").known("badSinceDate", "2026-06-01T00:00:00Z").write(out);
  }

  // Announcements.

  private void announcements() throws Exception {
    CMPCertificate next = cmp(pki.certificate("root-next"));
    CMPCertificate nextWithOld = cmp(pki.certificate("next-with-old"));
    CMPCertificate oldWithNext = cmp(pki.certificate("old-with-next"));
    new Message("ckuann", PKIBody.TYPE_CA_KEY_UPDATE_ANN, new CAKeyUpdAnnContent(oldWithNext, nextWithOld, next))
        .by(pbm).write(out);
    RootCaKeyUpdateContent update = new RootCaKeyUpdateContent(next, nextWithOld, null);
    new Message("ckuann-v3", PKIBody.TYPE_CA_KEY_UPDATE_ANN, new DERTaggedObject(true, 0, update)).by(pbm).pvno(3).writeRaw(out);
    new Message("cann", PKIBody.TYPE_CERT_ANN, new CertAnnContent(certificate.toASN1Structure()))
        .by(pbm).known("serial", "4711").write(out);
    new Message("crlann", PKIBody.TYPE_CRL_ANN, new CRLAnnContent(pki.crl("root").toASN1Structure())).by(pbm).write(out);
  }

  // Challenges of the three-way proof.

  private void challenges() throws Exception {
    Challenge first = new Challenge(Protection.algorithm(SHA256), hash("first"), "challenge".getBytes());
    Challenge second = new Challenge(hash("second"), "another".getBytes());
    ASN1Sequence two = new DERSequence(new ASN1Encodable[] {first, second});
    new Message("popdecc", PKIBody.TYPE_POPO_CHALL, POPODecKeyChallContent.getInstance(two)).by(pbm).answers().write(out);
    PublicKey rsa = KeyFactory.getInstance("RSA", "BC").generatePublic(new X509EncodedKeySpec(encryptionKey.getEncoded()));
    EnvelopedData rand = enveloped(new JceKeyTransRecipientInfoGenerator("recipient".getBytes(), rsa).setProvider("BC"));
    ASN1Encodable[] challenge = {
      new DEROctetString(hash("third")), new DEROctetString(new byte[0]), new DERTaggedObject(true, 0, rand),
    };
    new Message("popdecc-encryptedrand", PKIBody.TYPE_POPO_CHALL, new DERSequence(new DERSequence(challenge)))
        .by(pbm).answers().pvno(3).writeRaw(out);
    ASN1Encodable[] numbers = {new ASN1Integer(5), new ASN1Integer(BigInteger.ONE.shiftLeft(64)), new ASN1Integer(-1)};
    new Message("popdecr", PKIBody.TYPE_POPO_REP, POPODecKeyRespContent.getInstance(new DERSequence(numbers)))
        .by(pbm).known("numbers", "05,010000000000000000,ff").write(out);
  }

  private static byte[] hash(String text) throws Exception {
    return MessageDigest.getInstance("SHA-256").digest(text.getBytes());
  }

  // Confirmation and polling.

  private void confirmations() throws Exception {
    byte[] sha256 = MessageDigest.getInstance("SHA-256").digest(certificate.getEncoded());
    byte[] sha384 = MessageDigest.getInstance("SHA-384").digest(certificate.getEncoded());
    CertStatus accepted = new CertStatus(sha256, BigInteger.ZERO);
    new Message("certconf", PKIBody.TYPE_CERT_CONFIRM, CertConfirmContent.getInstance(new DERSequence(accepted)))
        .by(pbm).known("certReqId", 0).known("certHash", Hex.toHexString(sha256)).write(out);
    PKIStatusInfo refusal =
        new PKIStatusInfo(PKIStatus.rejection, new PKIFreeText("not what was asked for"), new PKIFailureInfo(PKIFailureInfo.badCertTemplate));
    CertStatus refused = new CertStatus(sha384, BigInteger.valueOf(-1), refusal, Protection.algorithm(SHA384));
    new Message("certconf-hashalg", PKIBody.TYPE_CERT_CONFIRM, CertConfirmContent.getInstance(new DERSequence(refused)))
        .by(pbm).pvno(3).known("certReqId", -1).known("certHash", Hex.toHexString(sha384)).known("hashAlg", SHA384)
        .known("status", "rejection").known("failInfo", 19).known("statusString", "not what was asked for").write(out);
    new Message("certconf-nothing", PKIBody.TYPE_CERT_CONFIRM, CertConfirmContent.getInstance(new DERSequence())).by(pbm).write(out);
    BigInteger[] ids = {BigInteger.ZERO, BigInteger.valueOf(-1), BigInteger.valueOf(300)};
    new Message("pollreq", PKIBody.TYPE_POLL_REQ, new PollReqContent(ids)).by(pbm).known("certReqId", "0,-1,300").write(out);
    PollRepContent later = new PollRepContent(new ASN1Integer(300), new ASN1Integer(86400), new PKIFreeText("tomorrow"));
    new Message("pollrep", PKIBody.TYPE_POLL_REP, later)
        .by(pbm).answers().known("certReqId", 300).known("checkAfter", 86400).known("reason", "tomorrow").write(out);
  }

  // General messages and generalInfo.

  private void information() throws Exception {
    ASN1Encodable[] algorithms = {Protection.algorithmWithNull(RSA), Protection.algorithm("1.3.101.112")};
    ASN1Encodable root = pki.certificate("root").toASN1Structure();
    CertTemplate template = new CertTemplateBuilder().setSubject(new X500Name("O=vectors")).build();
    ASN1Sequence keySpec =
        new DERSequence(new ASN1Encodable[] {
          new AttributeTypeAndValue(REG_CTRL + 11, Protection.algorithmWithNull(RSA)),
          new AttributeTypeAndValue(REG_CTRL + 12, new ASN1Integer(3072)),
        });
    CRLSource issuer = new CRLSource(null, new GeneralNames(new GeneralName(new X500Name("CN=Vectors Root"))));
    CRLSource point =
        new CRLSource(new DistributionPointName(new GeneralNames(new GeneralName(6, "http://crl/root.crl"))), null);
    Time since = new Time(new Date(1767225600000L));
    EncryptedValue passphrase =
        new EncryptedValue(null, Protection.algorithm(AES128_CBC), new DERBitString(HIDDEN), null, null, new DERBitString(HIDDEN));
    info("genm-questions", PKIBody.TYPE_GEN_MSG,
        info(1, null), info(2, null), info(3, null), info(4, null), info(6, null), info(7, null),
        info(10, new ASN1ObjectIdentifier("1.2.840.10045.2.1")), info(12, new EncryptedKey(passphrase)),
        info(16, new DERSequence(new ASN1Encodable[] {new DERUTF8String("en"), new DERUTF8String("de")})),
        info(17, null), info(18, null), info(19, null), info(20, root),
        info(22, new DERSequence(new ASN1Encodable[] {new CRLStatus(issuer, since), new CRLStatus(point, null)})),
        info(24, null), new InfoTypeAndValue(new ASN1ObjectIdentifier("1.2.3.4.5"), new DERUTF8String("unknown")))
        .by(pbm).write(out);
    ASN1Encodable[] kem = {Protection.algorithm("2.16.840.1.101.3.4.4.1"), new DEROctetString(HIDDEN)};
    info("genp-answers", PKIBody.TYPE_GEN_REP,
        info(1, root), info(2, new DERSequence(algorithms)), info(3, new DERSequence(algorithms[0])),
        info(4, Protection.algorithm(AES128_CBC)), info(6, pki.crl("root").toASN1Structure()),
        info(7, new DERSequence(new ASN1Encodable[] {new ASN1ObjectIdentifier("1.2.3"), new ASN1ObjectIdentifier("2.999.4")})),
        info(11, new AlgorithmIdentifier(new ASN1ObjectIdentifier("1.2.840.10045.2.1"), new ASN1ObjectIdentifier("1.2.840.10045.3.1.7"))),
        info(16, new DERSequence(new DERUTF8String("en"))), info(17, new DERSequence(root)),
        info(18, new RootCaKeyUpdateContent(cmp(pki.certificate("root-next")), cmp(pki.certificate("next-with-old")), cmp(pki.certificate("old-with-next")))),
        info(19, new CertReqTemplateContent(template, keySpec)),
        info(23, new DERSequence(pki.crl("root").toASN1Structure())),
        info(24, new DERSequence(kem)))
        .by(pbm).answers().write(out);
    info("genp-key-update-v2", PKIBody.TYPE_GEN_REP,
        info(5, new CAKeyUpdAnnContent(cmp(pki.certificate("old-with-next")), cmp(pki.certificate("next-with-old")), cmp(pki.certificate("root-next")))))
        .by(pbm).answers().write(out);

    new Message("header-everything", PKIBody.TYPE_CONFIRM, new PKIConfirmContent())
        .by(pbm).answers().pvno(3).at("2026-06-01T12:30:59Z").recipKID("recipient key").freeText("a line", "another, in français", "и ещё")
        .info(info(13, DERNull.INSTANCE)).info(info(21, new DERSequence(new DERUTF8String("profile")))).write(out);
    new Message("header-confirmwaittime", PKIBody.TYPE_CONFIRM, new PKIConfirmContent())
        .by(pbm).answers().at("2026-06-01T12:30:59Z").info(info(14, new ASN1GeneralizedTime("20260602123059Z")))
        .known("confirmWaitTime", "2026-06-02T12:30:59Z").write(out);
  }

  private static InfoTypeAndValue info(int number, ASN1Encodable value) {
    ASN1ObjectIdentifier type = new ASN1ObjectIdentifier(IT + number);
    return value == null ? new InfoTypeAndValue(type) : new InfoTypeAndValue(type, value);
  }

  private static Message info(String name, int type, InfoTypeAndValue... values) {
    List<String> types = new ArrayList<>();
    for (InfoTypeAndValue value : values) types.add(value.getInfoType().getId());
    ASN1Encodable content = type == PKIBody.TYPE_GEN_MSG ? new GenMsgContent(values) : new GenRepContent(values);
    return new Message(name, type, content).known("infoTypes", String.join(",", types));
  }

  // Messages inside messages.

  private void nested() throws Exception {
    PKIMessage first = inner("CN=first");
    PKIMessage second = inner("CN=second");
    Protection signature = Protection.signature("ECDSA P-256 SHA-256", "SHA256withECDSA", pki.key("p256"), pki.certificate("p256"));
    new Message("nested-batch", PKIBody.TYPE_NESTED, new PKIMessages(new PKIMessage[] {first, second}))
        .by(signature).known("messages", 2).write(out);
    PKIMessage inside = new PKIMessage(first.getHeader(), new PKIBody(PKIBody.TYPE_NESTED, new PKIMessages(second)));
    new Message("nested-twice", PKIBody.TYPE_NESTED, new PKIMessages(inside)).by(pbm).known("messages", 1).write(out);
    new Message("origpkimessage", PKIBody.TYPE_CONFIRM, new PKIConfirmContent())
        .by(pbm).info(info(15, new PKIMessages(first))).write(out);
  }

  private static PKIMessage inner(String sender) {
    PKIHeaderBuilder header = new PKIHeaderBuilder(2, new GeneralName(new X500Name(sender)), PKIHeader.NULL_NAME);
    header.setTransactionID(HIDDEN);
    return new PKIMessage(header.build(), new PKIBody(PKIBody.TYPE_CONFIRM, new PKIConfirmContent()));
  }
}
