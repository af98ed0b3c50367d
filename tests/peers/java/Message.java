import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.text.SimpleDateFormat;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Date;
import java.util.List;
import java.util.TimeZone;
import org.bouncycastle.asn1.ASN1Encodable;
import org.bouncycastle.asn1.ASN1EncodableVector;
import org.bouncycastle.asn1.ASN1GeneralizedTime;
import org.bouncycastle.asn1.DERBitString;
import org.bouncycastle.asn1.DERSequence;
import org.bouncycastle.asn1.DERTaggedObject;
import org.bouncycastle.asn1.cmp.InfoTypeAndValue;
import org.bouncycastle.asn1.cmp.PKIBody;
import org.bouncycastle.asn1.cmp.PKIFreeText;
import org.bouncycastle.asn1.cmp.PKIHeaderBuilder;
import org.bouncycastle.asn1.cmp.PKIMessage;
import org.bouncycastle.asn1.x500.X500Name;
import org.bouncycastle.asn1.x509.GeneralName;
import org.bouncycastle.cert.cmp.ProtectedPKIMessageBuilder;
import org.bouncycastle.util.encoders.Hex;

/** A message that is being made, what is known about it, and how it gets into the index. */
final class Message {
  static final String[] BODIES = {
    "ir", "ip", "cr", "cp", "p10cr", "popdecc", "popdecr", "kur", "kup", "krr", "krp", "rr", "rp", "ccr", "ccp",
    "ckuann", "cann", "rann", "crlann", "pkiconf", "nested", "genm", "genp", "error", "certConf", "pollReq", "pollRep",
  };
  private static final String RECIPIENT = "CN=recipient";
  /** UTF-8 whatever the locale. */
  private static final PrintStream OUT = new PrintStream(System.out, true, StandardCharsets.UTF_8);

  private final String name;
  private final String file;
  private final int type;
  private final ASN1Encodable content;
  private final List<String> known = new ArrayList<>();
  private final List<InfoTypeAndValue> generalInfo = new ArrayList<>();
  private Protection protection = Protection.NONE;
  private String popo = "-";
  private String verdict;
  private int pvno = 2;
  private Date messageTime;
  private String[] freeText;
  private byte[] recipKID;
  private boolean answers;

  Message(String name, int type, ASN1Encodable content) {
    this.name = name.toLowerCase();
    this.file = "bc-1.72-" + this.name + ".der";
    this.type = type;
    this.content = content;
  }

  Message by(Protection protection) {
    this.protection = protection;
    return this;
  }

  Message popo(String popo) {
    this.popo = popo;
    return this;
  }

  Message refused() {
    this.verdict = "refused";
    return this;
  }

  Message pvno(int pvno) {
    this.pvno = pvno;
    return this;
  }

  Message at(String time) throws Exception {
    SimpleDateFormat format = new SimpleDateFormat("yyyy-MM-dd'T'HH:mm:ssX");
    format.setTimeZone(TimeZone.getTimeZone("UTC"));
    this.messageTime = format.parse(time);
    return known("messageTime", time);
  }

  Message freeText(String... lines) {
    this.freeText = lines;
    return known("freeText", String.join("|", lines));
  }

  Message recipKID(String kid) {
    this.recipKID = kid.getBytes();
    return known("recipKID", Hex.toHexString(recipKID));
  }

  /** It carries a recipNonce. */
  Message answers() {
    this.answers = true;
    return this;
  }

  Message info(InfoTypeAndValue info) {
    generalInfo.add(info);
    return this;
  }

  Message known(String key, Object value) {
    known.add(key + "=" + value);
    return this;
  }

  /** With the classes for messages. */
  void write(Path folder) throws Exception {
    PKIBody body = new PKIBody(type, content);
    if (protection == Protection.NONE) {
      save(folder, new PKIMessage(header().build(), body).getEncoded("DER"));
      return;
    }
    ProtectedPKIMessageBuilder builder = new ProtectedPKIMessageBuilder(pvno, sender(), recipient());
    builder.setTransactionID(identifier("transactionID")).setSenderNonce(identifier("senderNonce"));
    builder.setSenderKID(senderKID()).setBody(body);
    if (answers) builder.setRecipNonce(identifier("recipNonce"));
    if (recipKID != null) builder.setRecipKID(recipKID);
    if (messageTime != null) builder.setMessageTime(messageTime);
    if (freeText != null) builder.setFreeText(new PKIFreeText(freeText));
    for (InfoTypeAndValue info : generalInfo) builder.addGeneralInfo(info);
    if (protection.signs()) {
      builder.addCMPCertificate(protection.certificate);
      save(folder, builder.build(protection.signer()).toASN1Structure().getEncoded("DER"));
    } else {
      save(folder, builder.build(protection.mac()).toASN1Structure().getEncoded("DER"));
    }
  }

  /** With the classes for ASN.1 alone, where those for messages do not know the body. */
  void writeRaw(Path folder) throws Exception {
    PKIHeaderBuilder header = header();
    if (protection != Protection.NONE) header.setProtectionAlg(protection.algorithm());
    ASN1EncodableVector fields = new ASN1EncodableVector();
    fields.add(header.build());
    fields.add(new DERTaggedObject(true, type, content));
    if (protection != Protection.NONE) {
      byte[] bits = protection.protect(new DERSequence(fields).getEncoded("DER"));
      fields.add(new DERTaggedObject(true, 0, new DERBitString(bits)));
    }
    save(folder, new DERSequence(fields).getEncoded("DER"));
  }

  private PKIHeaderBuilder header() throws Exception {
    PKIHeaderBuilder header = new PKIHeaderBuilder(pvno, sender(), recipient());
    header.setTransactionID(identifier("transactionID")).setSenderNonce(identifier("senderNonce"));
    header.setSenderKID(senderKID());
    if (answers) header.setRecipNonce(identifier("recipNonce"));
    if (recipKID != null) header.setRecipKID(recipKID);
    if (messageTime != null) header.setMessageTime(new ASN1GeneralizedTime(messageTime));
    if (freeText != null) header.setFreeText(new PKIFreeText(freeText));
    if (!generalInfo.isEmpty()) header.setGeneralInfo(generalInfo.toArray(new InfoTypeAndValue[0]));
    return header;
  }

  private GeneralName sender() {
    return new GeneralName(protection.signs() ? protection.certificate.getSubject() : new X500Name("CN=" + name));
  }

  private GeneralName recipient() {
    return new GeneralName(new X500Name(RECIPIENT));
  }

  private byte[] senderKID() {
    return protection.signs() ? Pki.keyIdentifier(protection.certificate) : name.getBytes();
  }

  /** 16 octets that are the same in every run. */
  private byte[] identifier(String field) throws Exception {
    byte[] hash = MessageDigest.getInstance("SHA-256").digest((field + " of " + name).getBytes());
    return Arrays.copyOf(hash, 16);
  }

  private void save(Path folder, byte[] der) throws Exception {
    Files.write(folder.resolve(file), der);
    known("pvno", pvno).known("recipient", RECIPIENT).known("sender", sender().getName());
    known("senderKID", Hex.toHexString(senderKID()));
    known("transactionID", Hex.toHexString(identifier("transactionID")));
    known("senderNonce", Hex.toHexString(identifier("senderNonce")));
    if (answers) known("recipNonce", Hex.toHexString(identifier("recipNonce")));
    if (!generalInfo.isEmpty()) {
      List<String> types = new ArrayList<>();
      for (InfoTypeAndValue info : generalInfo) types.add(info.getInfoType().getId());
      known("generalInfo", String.join(",", types));
    }
    String judgement = verdict != null ? verdict : protection == Protection.NONE ? "unprotected" : "valid";
    OUT.println(
        String.join("\t", file, "bouncy-castle-1.72", BODIES[type], protection.name, protection.checkedWith, judgement, popo,
            String.join(";", known)));
  }
}
