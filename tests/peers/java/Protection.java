import java.io.ByteArrayOutputStream;
import java.io.OutputStream;
import java.security.PrivateKey;
import java.util.Arrays;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;
import org.bouncycastle.asn1.ASN1ObjectIdentifier;
import org.bouncycastle.asn1.DERNull;
import org.bouncycastle.asn1.cmp.PBMParameter;
import org.bouncycastle.asn1.pkcs.PBKDF2Params;
import org.bouncycastle.asn1.pkcs.PBMAC1Params;
import org.bouncycastle.asn1.pkcs.PKCSObjectIdentifiers;
import org.bouncycastle.asn1.x509.AlgorithmIdentifier;
import org.bouncycastle.cert.X509CertificateHolder;
import org.bouncycastle.cert.crmf.PKMACBuilder;
import org.bouncycastle.cert.crmf.jcajce.JcePKMACValuesCalculator;
import org.bouncycastle.crypto.ExtendedDigest;
import org.bouncycastle.crypto.digests.SHA224Digest;
import org.bouncycastle.crypto.digests.SHA256Digest;
import org.bouncycastle.crypto.digests.SHA384Digest;
import org.bouncycastle.crypto.digests.SHA512Digest;
import org.bouncycastle.crypto.generators.PKCS5S2ParametersGenerator;
import org.bouncycastle.crypto.macs.HMac;
import org.bouncycastle.crypto.params.KeyParameter;
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
  private final Maker<MacCalculator> macs;
  private final Maker<ContentSigner> signers;
  final X509CertificateHolder certificate;

  private Protection(
      String name, String checkedWith, Maker<MacCalculator> macs, Maker<ContentSigner> signers,
      X509CertificateHolder certificate) {
    this.name = name;
    this.checkedWith = checkedWith;
    this.macs = macs;
    this.signers = signers;
    this.certificate = certificate;
  }

  /** Calculators and signers keep what was written to them: each message has its own. */
  private interface Maker<T> {
    T make() throws Exception;
  }

  boolean signs() {
    return signers != null;
  }

  MacCalculator mac() throws Exception {
    return macs.make();
  }

  ContentSigner signer() throws Exception {
    return signers.make();
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
    return pbm(name, owf, mac, iterations, salt(), secret);
  }

  static Protection pbm(String name, String owf, String mac, int iterations, byte[] salt, String secret)
      throws Exception {
    PKMACBuilder builder = new PKMACBuilder(new JcePKMACValuesCalculator().setProvider("BC"));
    builder.setParameters(new PBMParameter(salt, algorithm(owf), iterations, algorithmWithNull(mac)));
    return new Protection("PBM " + name, "secret:" + secret, () -> builder.build(secret.toCharArray()), null, null);
  }

  private static final String HMAC = "1.2.840.113549.2.";
  private static final int[] HMAC_BITS = {224, 256, 384, 512};

  private static AlgorithmIdentifier hmac(String hash) {
    int bits = Integer.parseInt(hash.substring("SHA-".length()));
    return algorithmWithNull(HMAC + (8 + Arrays.binarySearch(HMAC_BITS, bits)));
  }

  /** The hash of an HMAC, by the name that {@link #pbmac1} takes. */
  static String hashOf(AlgorithmIdentifier hmac) {
    for (int bits : HMAC_BITS) {
      if (hmac("SHA-" + bits).getAlgorithm().equals(hmac.getAlgorithm())) return "SHA-" + bits;
    }
    throw new IllegalArgumentException(hmac.getAlgorithm() + " is no HMAC with SHA-2");
  }

  /** PBMAC1 (RFC 8018, 7.1) with a key of any length, put together from its parts: the class for
   * it forgets in 1.72 which prf it was given. */
  static Protection pbmac1(String prf, String mac, int keyLength, int iterations, String secret) throws Exception {
    return pbmac1(prf, mac, keyLength, iterations, salt(), secret);
  }

  static Protection pbmac1(String prf, String mac, int keyLength, int iterations, byte[] salt, String secret)
      throws Exception {
    PBKDF2Params derivation = new PBKDF2Params(salt, iterations, keyLength, hmac(prf));
    PBMAC1Params parameters =
        new PBMAC1Params(new AlgorithmIdentifier(PKCSObjectIdentifiers.id_PBKDF2, derivation), hmac(mac));
    PKCS5S2ParametersGenerator generator = new PKCS5S2ParametersGenerator(digest(prf));
    generator.init(secret.getBytes("UTF-8"), salt, iterations);
    KeyParameter key = (KeyParameter) generator.generateDerivedMacParameters(keyLength * 8);
    AlgorithmIdentifier algorithm = new AlgorithmIdentifier(PKCSObjectIdentifiers.id_PBMAC1, parameters);
    Function function = data -> {
      HMac calculator = new HMac(digest(mac));
      calculator.init(key);
      calculator.update(data, 0, data.length);
      byte[] bits = new byte[calculator.getMacSize()];
      calculator.doFinal(bits, 0);
      return bits;
    };
    String full = "PBMAC1 HMAC-" + prf.replace("-", "") + " HMAC-" + mac.replace("-", "") + " key of " + keyLength;
    return new Protection(full, "secret:" + secret, () -> fromBytes(algorithm, function, key.getKey()), null, null);
  }

  private static ExtendedDigest digest(String name) {
    switch (name) {
      case "SHA-224":
        return new SHA224Digest();
      case "SHA-256":
        return new SHA256Digest();
      case "SHA-384":
        return new SHA384Digest();
      case "SHA-512":
        return new SHA512Digest();
      default:
        throw new IllegalArgumentException(name);
    }
  }

  /** PBMAC1 as the class for it makes it in 1.72: it calls the derivation PBES2. */
  static Protection pbmac1NamedPbes2(String secret) {
    Maker<MacCalculator> calculator =
        () ->
            new JcePBMac1CalculatorBuilder("HmacSHA256", 256)
                .setProvider("BC").setPrf(JcePBMac1CalculatorBuilder.PRF_SHA256).setIterationCount(100).setSalt(salt())
                .build(secret.toCharArray());
    return new Protection("PBMAC1 with PBES2", "-", calculator, null, null);
  }

  /** A MAC under a key that both sides have, without derivation (RFC 9481, 6.2.1). */
  static Protection hmac(String name, String oid, String jceName, String secret) throws Exception {
    byte[] key = secret.getBytes("UTF-8");
    Mac mac = Mac.getInstance(jceName, "BC");
    mac.init(new SecretKeySpec(key, jceName));
    return new Protection("HMAC-" + name.replace("-", ""), "secret:" + secret, () -> fromBytes(algorithmWithNull(oid), mac::doFinal, key), null, null);
  }

  /** A protection whose bits mean nothing, for an algorithm that nobody is to accept. */
  static Protection meaningless(String name, AlgorithmIdentifier algorithm, int length) {
    return new Protection(name, "-", () -> fromBytes(algorithm, data -> new byte[length], new byte[1]), null, null);
  }

  static Protection signature(String name, String jcaName, PrivateKey key, X509CertificateHolder certificate)
      throws Exception {
    Maker<ContentSigner> signers = () -> new JcaContentSignerBuilder(jcaName).setProvider("BC").build(key);
    return new Protection(name, "anchor:root.der", null, signers, certificate);
  }

  AlgorithmIdentifier algorithm() throws Exception {
    return signs() ? signer().getAlgorithmIdentifier() : mac().getAlgorithmIdentifier();
  }

  byte[] protect(byte[] part) throws Exception {
    if (signs()) {
      ContentSigner signer = signer();
      signer.getOutputStream().write(part);
      return signer.getSignature();
    }
    MacCalculator mac = mac();
    mac.getOutputStream().write(part);
    return mac.getMac();
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
