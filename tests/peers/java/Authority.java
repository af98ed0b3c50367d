import java.io.FileWriter;
import java.math.BigInteger;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.security.KeyPair;
import java.security.KeyPairGenerator;
import java.security.PrivateKey;
import java.security.SecureRandom;
import java.time.Duration;
import java.time.Instant;
import java.util.Date;
import java.util.Map;
import org.bouncycastle.asn1.ASN1Encodable;
import org.bouncycastle.asn1.DERSequence;
import org.bouncycastle.asn1.DERTaggedObject;
import org.bouncycastle.asn1.x500.X500Name;
import org.bouncycastle.asn1.x509.BasicConstraints;
import org.bouncycastle.asn1.x509.CRLNumber;
import org.bouncycastle.asn1.x509.Extension;
import org.bouncycastle.asn1.x509.Extensions;
import org.bouncycastle.asn1.x509.KeyUsage;
import org.bouncycastle.asn1.x509.SubjectPublicKeyInfo;
import org.bouncycastle.cert.X509CRLHolder;
import org.bouncycastle.cert.X509CertificateHolder;
import org.bouncycastle.cert.X509v2CRLBuilder;
import org.bouncycastle.cert.X509v3CertificateBuilder;
import org.bouncycastle.cert.jcajce.JcaX509ExtensionUtils;
import org.bouncycastle.openssl.jcajce.JcaPEMWriter;
import org.bouncycastle.operator.jcajce.JcaContentSignerBuilder;
import org.bouncycastle.operator.jcajce.JcaContentVerifierProviderBuilder;

/** The CA `sub` of a PKI: makes certificates and its CRL, and judges its own certificates. */
final class Authority {
  private static final SecureRandom RANDOM = new SecureRandom();
  private static final Duration VALIDITY = Duration.ofDays(20);

  final X509CertificateHolder root;
  final X509CertificateHolder issuer;
  private final PrivateKey rootKey;
  private final PrivateKey issuerKey;
  private final Path folder;
  private final Books books;
  private ASN1Encodable rootUpdate;

  Authority(Pki pki, Path folder, Books books) throws Exception {
    this.root = pki.certificate("root");
    this.rootKey = pki.key("root");
    this.issuer = pki.certificate("sub");
    this.issuerKey = pki.key("sub");
    this.folder = folder;
    this.books = books;
    writeCrl();
  }

  static byte[] random(int octets) {
    byte[] bytes = new byte[octets];
    RANDOM.nextBytes(bytes);
    return bytes;
  }

  /** The signature algorithm that goes with a key. */
  static String algorithm(PrivateKey key) {
    switch (key.getAlgorithm()) {
      case "EC":
      case "ECDSA":
        return "SHA256withECDSA";
      case "RSA":
        return "SHA256withRSA";
      default:
        return key.getAlgorithm();
    }
  }

  /** Subject, key and subjectAltName are as requested, the rest is the CA's. */
  X509CertificateHolder issue(X500Name subject, SubjectPublicKeyInfo key, Extensions wanted) throws Exception {
    X509v3CertificateBuilder builder = builder(issuer.getSubject(), subject, key);
    builder.addExtension(Extension.basicConstraints, false, new BasicConstraints(false));
    builder.addExtension(Extension.keyUsage, true, new KeyUsage(KeyUsage.digitalSignature));
    builder.addExtension(Extension.subjectKeyIdentifier, false, extensions().createSubjectKeyIdentifier(key));
    builder.addExtension(Extension.authorityKeyIdentifier, false, extensions().createAuthorityKeyIdentifier(issuer));
    Extension names = wanted == null ? null : wanted.getExtension(Extension.subjectAlternativeName);
    if (names != null) builder.addExtension(names);
    return sign(builder, issuerKey);
  }

  private static JcaX509ExtensionUtils extensions() throws Exception {
    return new JcaX509ExtensionUtils();
  }

  private static X509v3CertificateBuilder builder(X500Name issuer, X500Name subject, SubjectPublicKeyInfo key) {
    Instant now = Instant.now();
    BigInteger serial = new BigInteger(1, random(16)).setBit(126).clearBit(127);
    return new X509v3CertificateBuilder(
        issuer, serial, Date.from(now.minusSeconds(60)), Date.from(now.plus(VALIDITY)), subject, key);
  }

  private static X509CertificateHolder sign(X509v3CertificateBuilder builder, PrivateKey key) throws Exception {
    return builder.build(new JcaContentSignerBuilder(algorithm(key)).setProvider("BC").build(key));
  }

  /** Whether a certificate falls under this PKI and is valid now. */
  boolean vouchesFor(X509CertificateHolder certificate) throws Exception {
    X509CertificateHolder above = certificate.getIssuer().equals(issuer.getSubject()) ? issuer : root;
    return certificate.getIssuer().equals(above.getSubject())
        && certificate.isValidOn(new Date())
        && certificate.isSignatureValid(new JcaContentVerifierProviderBuilder().setProvider("BC").build(above));
  }

  boolean hasRevoked(X509CertificateHolder certificate) {
    return certificate.getIssuer().equals(issuer.getSubject()) && books.revoked.containsKey(certificate.getSerialNumber());
  }

  X509CRLHolder crl() throws Exception {
    Instant now = Instant.now();
    X509v2CRLBuilder builder = new X509v2CRLBuilder(issuer.getSubject(), Date.from(now));
    builder.setNextUpdate(Date.from(now.plus(Duration.ofDays(7))));
    for (Map.Entry<BigInteger, Books.Revoked> entry : books.revoked.entrySet()) {
      builder.addCRLEntry(entry.getKey(), entry.getValue().at, entry.getValue().reason);
    }
    builder.addExtension(Extension.authorityKeyIdentifier, false, extensions().createAuthorityKeyIdentifier(issuer));
    builder.addExtension(Extension.cRLNumber, false, new CRLNumber(BigInteger.valueOf(now.toEpochMilli())));
    return builder.build(new JcaContentSignerBuilder(algorithm(issuerKey)).setProvider("BC").build(issuerKey));
  }

  /** Puts the CRL where those find it who do not ask for it. */
  void writeCrl() throws Exception {
    Path fresh = folder.resolve("crl.pem.new");
    try (JcaPEMWriter writer = new JcaPEMWriter(new FileWriter(fresh.toFile()))) {
      writer.writeObject(crl());
    }
    Files.move(fresh, folder.resolve("crl.pem"), StandardCopyOption.ATOMIC_MOVE);
  }

  /** RootCaKeyUpdateContent (RFC 9810, 5.3.13): a new key of the root, and each key under the other. */
  ASN1Encodable rootUpdate() throws Exception {
    if (rootUpdate == null) {
      KeyPairGenerator generator = KeyPairGenerator.getInstance("EC", "BC");
      generator.initialize(256, RANDOM);
      KeyPair pair = generator.generateKeyPair();
      SubjectPublicKeyInfo fresh = SubjectPublicKeyInfo.getInstance(pair.getPublic().getEncoded());
      SubjectPublicKeyInfo old = root.getSubjectPublicKeyInfo();
      rootUpdate = new DERSequence(new ASN1Encodable[] {
        rootCertificate(fresh, pair.getPrivate(), fresh),
        new DERTaggedObject(true, 0, rootCertificate(fresh, rootKey, old)),
        new DERTaggedObject(true, 1, rootCertificate(old, pair.getPrivate(), fresh)),
      });
    }
    return rootUpdate;
  }

  private ASN1Encodable rootCertificate(SubjectPublicKeyInfo key, PrivateKey by, SubjectPublicKeyInfo byPublic)
      throws Exception {
    X509v3CertificateBuilder builder = builder(root.getSubject(), root.getSubject(), key);
    builder.addExtension(Extension.basicConstraints, true, new BasicConstraints(true));
    builder.addExtension(Extension.keyUsage, true, new KeyUsage(KeyUsage.keyCertSign | KeyUsage.cRLSign));
    builder.addExtension(Extension.subjectKeyIdentifier, false, extensions().createSubjectKeyIdentifier(key));
    // All three have the same names: the keys tell them apart.
    builder.addExtension(Extension.authorityKeyIdentifier, false, extensions().createAuthorityKeyIdentifier(byPublic));
    return sign(builder, by).toASN1Structure();
  }
}
