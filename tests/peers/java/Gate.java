import java.math.BigInteger;
import java.util.Arrays;
import org.bouncycastle.asn1.ASN1Encodable;
import org.bouncycastle.asn1.DERNull;
import org.bouncycastle.asn1.DERSequence;
import org.bouncycastle.asn1.cmp.CMPObjectIdentifiers;
import org.bouncycastle.asn1.cmp.InfoTypeAndValue;
import org.bouncycastle.asn1.cmp.PBMParameter;
import org.bouncycastle.asn1.cmp.PKIBody;
import org.bouncycastle.asn1.cmp.PKIFailureInfo;
import org.bouncycastle.asn1.cmp.PKIHeader;
import org.bouncycastle.asn1.cmp.PKIMessage;
import org.bouncycastle.asn1.pkcs.PBKDF2Params;
import org.bouncycastle.asn1.pkcs.PBMAC1Params;
import org.bouncycastle.asn1.pkcs.PKCSObjectIdentifiers;
import org.bouncycastle.asn1.x509.AlgorithmIdentifier;
import org.bouncycastle.asn1.x509.GeneralName;
import org.bouncycastle.cert.X509CertificateHolder;
import org.bouncycastle.cert.cmp.GeneralPKIMessage;
import org.bouncycastle.cert.cmp.ProtectedPKIMessage;
import org.bouncycastle.cert.cmp.ProtectedPKIMessageBuilder;
import org.bouncycastle.cert.crmf.PKMACBuilder;
import org.bouncycastle.cert.crmf.jcajce.JcePKMACValuesCalculator;
import org.bouncycastle.operator.jcajce.JcaContentVerifierProviderBuilder;

/** Checks the protection of requests and protects answers in the same way (RFC 9483, 3.2). */
final class Gate {
  /** As many as OpenSSL's client takes at most. */
  private static final int ITERATIONS_AT_MOST = 100_000;
  private static final int ITERATIONS = 1000;
  private static final String SHA256 = "2.16.840.1.101.3.4.2.1";

  /** Who sent a request, as far as is proved. */
  static final class Client {
    /** Of a signature; absent with a MAC. */
    final X509CertificateHolder certificate;
    private final boolean pbmac1;

    private Client(X509CertificateHolder certificate, boolean pbmac1) {
      this.certificate = certificate;
      this.pbmac1 = pbmac1;
    }

    /** All messages of a transaction come from the same. */
    String name() {
      return certificate == null ? "secret" : certificate.getSerialNumber().toString(16);
    }
  }

  private final Authority authority;
  private final Protection signature;
  private final String reference;
  private final String secret;

  Gate(Authority authority, Pki pki, String reference, String secret) throws Exception {
    this.authority = authority;
    this.signature =
        Protection.signature("server", Authority.algorithm(pki.key("server")), pki.key("server"), pki.certificate("server"));
    this.reference = reference;
    this.secret = secret;
  }

  Client admit(PKIMessage message) throws Exception {
    GeneralPKIMessage general = new GeneralPKIMessage(message);
    if (!general.hasProtection()) throw new Refusal(PKIFailureInfo.badMessageCheck, "the request is not protected");
    ProtectedPKIMessage request = new ProtectedPKIMessage(general);
    AlgorithmIdentifier algorithm = message.getHeader().getProtectionAlg();
    boolean pbmac1 = algorithm.getAlgorithm().equals(PKCSObjectIdentifiers.id_PBMAC1);
    if (!pbmac1 && !request.hasPasswordBasedMacProtection()) return new Client(signer(request), false);
    byte[] kid = message.getHeader().getSenderKID() == null ? null : message.getHeader().getSenderKID().getOctets();
    if (!Arrays.equals(kid, reference.getBytes("UTF-8"))) {
      throw new Refusal(PKIFailureInfo.badMessageCheck, "no secret is known under this senderKID");
    }
    boolean right =
        pbmac1
            ? verifyPbmac1(message)
            : request.verify(
                new PKMACBuilder(new JcePKMACValuesCalculator().setProvider("BC"), ITERATIONS_AT_MOST), secret.toCharArray());
    if (!right) throw new Refusal(PKIFailureInfo.badMessageCheck, "the MAC is wrong");
    return new Client(null, pbmac1);
  }

  private X509CertificateHolder signer(ProtectedPKIMessage request) throws Exception {
    X509CertificateHolder[] certificates = request.getCertificates();
    if (certificates.length == 0) throw new Refusal(PKIFailureInfo.addInfoNotAvailable, "extraCerts are missing");
    // The protection certificate comes first (RFC 9483, 3.3).
    X509CertificateHolder signer = certificates[0];
    if (!request.verify(new JcaContentVerifierProviderBuilder().setProvider("BC").build(signer))) {
      throw new Refusal(PKIFailureInfo.badMessageCheck, "the signature is wrong");
    }
    if (!authority.vouchesFor(signer)) throw new Refusal(PKIFailureInfo.signerNotTrusted, "the signer is a stranger");
    int type = request.getBody().getType();
    boolean mayBeRevoked = type == PKIBody.TYPE_REVOCATION_REQ || type == PKIBody.TYPE_POLL_REQ;
    if (!mayBeRevoked && authority.hasRevoked(signer)) {
      throw new Refusal(PKIFailureInfo.certRevoked, "the certificate of the signer is revoked");
    }
    return signer;
  }

  /** The class for it is broken in 1.72, so it is put together from its parts. */
  private boolean verifyPbmac1(PKIMessage message) throws Exception {
    PBMAC1Params parameters = PBMAC1Params.getInstance(message.getHeader().getProtectionAlg().getParameters());
    PBKDF2Params derivation = PBKDF2Params.getInstance(parameters.getKeyDerivationFunc().getParameters());
    int iterations = derivation.getIterationCount().intValueExact();
    if (iterations > ITERATIONS_AT_MOST) throw new Refusal(PKIFailureInfo.badAlg, "too many iterations");
    String hash = Protection.hashOf(parameters.getMessageAuthScheme());
    BigInteger length = derivation.getKeyLength();
    int bits = Integer.parseInt(hash.substring("SHA-".length()));
    Protection expected =
        Protection.pbmac1(
            Protection.hashOf(derivation.getPrf()), hash, length == null ? bits / 8 : length.intValueExact(), iterations,
            derivation.getSalt(), secret);
    byte[] part = new DERSequence(new ASN1Encodable[] {message.getHeader(), message.getBody()}).getEncoded("DER");
    return Arrays.equals(expected.protect(part), message.getProtection().getOctets());
  }

  /** The answer to a request. Who is not known gets a signature: it tells nothing of the secret. */
  PKIMessage seal(PKIMessage request, Client client, PKIBody body, Reply reply) throws Exception {
    boolean signs = client == null || client.certificate != null;
    PKIHeader header = request.getHeader();
    X509CertificateHolder sender = signs ? signature.certificate : authority.issuer;
    ProtectedPKIMessageBuilder builder =
        new ProtectedPKIMessageBuilder(
            reply.pvno == 0 ? header.getPvno().intValueExact() : reply.pvno,
            new GeneralName(sender.getSubject()), header.getSender());
    builder.setMessageTime(new java.util.Date()).setSenderNonce(reply.nonce).setBody(body);
    if (header.getTransactionID() != null) builder.setTransactionID(header.getTransactionID().getOctets());
    if (header.getSenderNonce() != null) builder.setRecipNonce(header.getSenderNonce().getOctets());
    if (reply.implicitConfirm) {
      builder.addGeneralInfo(new InfoTypeAndValue(CMPObjectIdentifiers.it_implicitConfirm, DERNull.INSTANCE));
    }
    if (signs) {
      builder.setSenderKID(Pki.keyIdentifier(signature.certificate));
      builder.addCMPCertificate(signature.certificate).addCMPCertificate(authority.issuer);
      return builder.build(signature.signer()).toASN1Structure();
    }
    builder.setSenderKID(reference.getBytes("UTF-8"));
    // Only the chain of the new certificate: a MAC is checked without (RFC 9483, 4.1.5).
    if (reply.delivers) builder.addCMPCertificate(authority.issuer);
    return builder.build(mac(client, header).mac()).toASN1Structure();
  }

  /** The algorithms that the client has used, with a salt of our own. */
  private Protection mac(Client client, PKIHeader header) throws Exception {
    byte[] salt = Authority.random(16);
    if (client.pbmac1) return Protection.pbmac1("SHA-256", "SHA-256", 32, ITERATIONS, salt, secret);
    PBMParameter theirs = PBMParameter.getInstance(header.getProtectionAlg().getParameters());
    String mac = theirs.getMac().getAlgorithm().getId();
    return Protection.pbm("", SHA256, mac, ITERATIONS, salt, secret);
  }
}
