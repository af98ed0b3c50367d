import java.io.IOException;
import java.math.BigInteger;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.Base64;
import java.util.Date;
import java.util.LinkedHashMap;
import java.util.Map;
import org.bouncycastle.cert.X509CertificateHolder;
import org.bouncycastle.util.encoders.Hex;

/** What the CA has done, one line each in `books.tsv`, on the disk before anybody is told:
 * event, transactionID, operation, serial number in hexadecimal, a word more, certificate in
 * base64. A CA that is started again reads them and knows its certificates and transactions. */
final class Books {
  /** A certificate that was issued, and under which transactionID. */
  static final class Issued {
    final String transaction;
    final String operation;
    final X509CertificateHolder certificate;
    boolean confirmed;

    private Issued(String transaction, String operation, X509CertificateHolder certificate) {
      this.transaction = transaction;
      this.operation = operation;
      this.certificate = certificate;
    }
  }

  /** A certificate that is not to be used. */
  static final class Revoked {
    final Date at;
    final int reason;

    private Revoked(Date at, int reason) {
      this.at = at;
      this.reason = reason;
    }
  }

  private final FileChannel file;
  final Map<BigInteger, Issued> issued = new LinkedHashMap<>();
  final Map<BigInteger, Revoked> revoked = new LinkedHashMap<>();

  Books(Path folder) throws Exception {
    Files.createDirectories(folder);
    Path path = folder.resolve("books.tsv");
    if (Files.exists(path)) {
      for (String line : Files.readAllLines(path)) {
        // A line that was cut by the end of the process was told to nobody.
        if (line.endsWith("\t.")) apply(line.split("\t", -1));
      }
    }
    file = FileChannel.open(path, StandardOpenOption.CREATE, StandardOpenOption.APPEND);
    // And does not run into the next one.
    if (file.size() > 0) append("\n");
  }

  void add(String event, String transaction, String operation, X509CertificateHolder certificate, String more)
      throws Exception {
    String[] fields = {
      event, transaction, operation, certificate == null ? "" : certificate.getSerialNumber().toString(16), more,
      certificate == null || !event.equals("issued") ? "" : Base64.getEncoder().encodeToString(certificate.getEncoded()),
      Long.toString(System.currentTimeMillis()), ".",
    };
    append(String.join("\t", fields) + "\n");
    apply(fields);
  }

  private void append(String text) throws IOException {
    ByteBuffer bytes = ByteBuffer.wrap(text.getBytes(StandardCharsets.UTF_8));
    while (bytes.hasRemaining()) file.write(bytes);
    file.force(false);
  }

  private void apply(String[] fields) throws Exception {
    BigInteger serial = fields[3].isEmpty() ? null : new BigInteger(fields[3], 16);
    switch (fields[0]) {
      case "issued":
        byte[] der = Base64.getDecoder().decode(fields[5]);
        issued.put(serial, new Issued(fields[1], fields[2], new X509CertificateHolder(der)));
        break;
      case "confirmed":
      case "rejected":
        issued.get(serial).confirmed = true;
        break;
      case "revoked":
        revoked.put(serial, new Revoked(new Date(Long.parseLong(fields[6])), Integer.parseInt(fields[4])));
        break;
      case "revived":
        revoked.remove(serial);
        break;
      default:
        break;
    }
  }

  static String hex(byte[] bytes) {
    return Hex.toHexString(bytes);
  }
}
