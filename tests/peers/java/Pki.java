import java.io.FileReader;
import java.nio.file.Path;
import java.security.PrivateKey;
import org.bouncycastle.asn1.pkcs.PrivateKeyInfo;
import org.bouncycastle.asn1.x509.SubjectKeyIdentifier;
import org.bouncycastle.cert.X509CRLHolder;
import org.bouncycastle.cert.X509CertificateHolder;
import org.bouncycastle.openssl.PEMKeyPair;
import org.bouncycastle.openssl.PEMParser;
import org.bouncycastle.openssl.jcajce.JcaPEMKeyConverter;
import org.bouncycastle.pkcs.PKCS10CertificationRequest;

/** A folder of PEM files: NAME.crt, NAME.key, NAME.csr, NAME.crl. */
final class Pki {
  private final Path folder;

  Pki(Path folder) {
    this.folder = folder;
  }

  private Object read(String file) throws Exception {
    try (PEMParser parser = new PEMParser(new FileReader(folder.resolve(file).toFile()))) {
      return parser.readObject();
    }
  }

  X509CertificateHolder certificate(String name) throws Exception {
    return (X509CertificateHolder) read(name + ".crt");
  }

  PKCS10CertificationRequest request(String name) throws Exception {
    return (PKCS10CertificationRequest) read(name + ".csr");
  }

  X509CRLHolder crl(String name) throws Exception {
    return (X509CRLHolder) read(name + ".crl");
  }

  PrivateKey key(String name) throws Exception {
    Object object = read(name + ".key");
    JcaPEMKeyConverter converter = new JcaPEMKeyConverter().setProvider("BC");
    return object instanceof PEMKeyPair
        ? converter.getKeyPair((PEMKeyPair) object).getPrivate()
        : converter.getPrivateKey((PrivateKeyInfo) object);
  }

  static byte[] keyIdentifier(X509CertificateHolder certificate) {
    return SubjectKeyIdentifier.fromExtensions(certificate.getExtensions()).getKeyIdentifier();
  }
}
