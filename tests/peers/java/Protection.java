import java.io.ByteArrayOutputStream;
import java.io.OutputStream;
import java.security.PrivateKey;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;
import org.bouncycastle.asn1.ASN1ObjectIdentifier;
import org.bouncycastle.asn1.DERNull;
import org.bouncycastle.asn1.cmp.PBMParameter;
import org.bouncycastle.asn1.x509.AlgorithmIdentifier;
import org.bouncycastle.cert.X509CertificateHolder;
import org.bouncycastle.cert.crmf.PKMACBuilder;
import org.bouncycastle.cert.crmf.jcajce.JcePKMACValuesCalculator;
import org.bouncycastle.operator.ContentSigner;
import org.bouncycastle.operator.GenericKey;
import org.bouncycastle.operator.MacCalculator;
import org.bouncycastle.operator.jcajce.JcaContentSignerBuilder;
import org.bouncycastle.pkcs.jcajce.JcePBMac1CalculatorBuilder;

/** How a message is protected: by a MAC or by a signature, or not at all. */
final class Protection {
  /** As the index names it. */
  final String name;
  /** What it is checked with, as the index names it. */
  final String checkedWith;
  final MacCalculator mac;
  final ContentSigner signer;
  final X509CertificateHolder certificate;

  private Protection(
      String name, String checkedWith, MacCalculator mac, ContentSigner signer, X509CertificateHolder certificate) {
    this.name = name;
    this.checkedWith = checkedWith;
    this.mac = mac;
    this.signer = signer;
    this.certificate = certificate;
  }

  static final Protection NONE = new Protection("none", "-", null, null, null);

  private static byte[] salt() {
    return "a salt of 16 oct".getBytes();
  }

  static AlgorithmIdentifier algorithm(String oid) {
    return new AlgorithmIdentifier(new ASN1ObjectIdentifier(oid));
  }

  static AlgorithmIdentifier algorithmWithNull(String oid) {
    return new AlgorithmIdentifier(new ASN1ObjectIdentifier(oid), DERNull.INSTANCE);
  }

  static Protection pbm(String name, String owf, String mac, int iterations, String secret) throws Exception {
    PKMACBuilder builder = new PKMACBuilder(new JcePKMACValuesCalculator().setProvider("BC"));
    builder.setParameters(new PBMParameter(salt(), algorithm(owf), iterations, algorithmWithNull(mac)));
    return new Protection("PBM " + name, "secret:" + secret, builder.build(secret.toCharArray()), null, null);
  }

  static Protection pbmac1(String name, String mac, int keyBits, AlgorithmIdentifier prf, int iterations, String secret)
      throws Exception {
    MacCalculator calculator =
        new JcePBMac1CalculatorBuilder(mac, keyBits)
            .setProvider("BC").setPrf(prf).setIterationCount(iterations).setSalt(salt()).build(secret.toCharArray());
    return new Protection("PBMAC1 " + name, "secret:" + secret, calculator, null, null);
  }

  /** A MAC under a key that both sides have, without derivation (RFC 9481, 6.2.1). */
  static Protection hmac(String name, String oid, String jceName, String secret) throws Exception {
    byte[] key = secret.getBytes("UTF-8");
    Mac mac = Mac.getInstance(jceName, "BC");
    mac.init(new SecretKeySpec(key, jceName));
    return new Protection("HMAC " + name, "secret:" + secret, fromBytes(algorithmWithNull(oid), mac::doFinal, key), null, null);
  }

  /** A protection whose bits mean nothing, for an algorithm that nobody is to accept. */
  static Protection meaningless(String name, AlgorithmIdentifier algorithm, int length) {
    return new Protection(name, "-", fromBytes(algorithm, data -> new byte[length], new byte[1]), null, null);
  }

  static Protection signature(String name, String jcaName, PrivateKey key, X509CertificateHolder certificate)
      throws Exception {
    ContentSigner signer = new JcaContentSignerBuilder(jcaName).setProvider("BC").build(key);
    return new Protection(name, "anchor:root.der", null, signer, certificate);
  }

  AlgorithmIdentifier algorithm() {
    return mac != null ? mac.getAlgorithmIdentifier() : signer != null ? signer.getAlgorithmIdentifier() : null;
  }

  byte[] protect(byte[] part) throws Exception {
    try (OutputStream out = mac != null ? mac.getOutputStream() : signer.getOutputStream()) {
      out.write(part);
    }
    return mac != null ? mac.getMac() : signer.getSignature();
  }

  private interface Function {
    byte[] of(byte[] data);
  }

  private static MacCalculator fromBytes(AlgorithmIdentifier algorithm, Function function, byte[] key) {
    return new MacCalculator() {
      private final ByteArrayOutputStream data = new ByteArrayOutputStream();

      public AlgorithmIdentifier getAlgorithmIdentifier() {
        return algorithm;
      }

      public OutputStream getOutputStream() {
        data.reset();
        return data;
      }

      public byte[] getMac() {
        return function.of(data.toByteArray());
      }

      public GenericKey getKey() {
        return new GenericKey(algorithm, key);
      }
    };
  }
}
