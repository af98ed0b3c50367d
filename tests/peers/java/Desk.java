import java.math.BigInteger;
import java.security.MessageDigest;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import org.bouncycastle.asn1.ASN1Encodable;
import org.bouncycastle.asn1.ASN1Integer;
import org.bouncycastle.asn1.ASN1Sequence;
import org.bouncycastle.asn1.ASN1TaggedObject;
import org.bouncycastle.asn1.cmp.CMPCertificate;
import org.bouncycastle.asn1.cmp.CMPObjectIdentifiers;
import org.bouncycastle.asn1.cmp.CertConfirmContent;
import org.bouncycastle.asn1.cmp.CertOrEncCert;
import org.bouncycastle.asn1.cmp.CertRepMessage;
import org.bouncycastle.asn1.cmp.CertResponse;
import org.bouncycastle.asn1.cmp.CertStatus;
import org.bouncycastle.asn1.cmp.CertifiedKeyPair;
import org.bouncycastle.asn1.cmp.ErrorMsgContent;
import org.bouncycastle.asn1.cmp.InfoTypeAndValue;
import org.bouncycastle.asn1.cmp.PKIBody;
import org.bouncycastle.asn1.cmp.PKIConfirmContent;
import org.bouncycastle.asn1.cmp.PKIFailureInfo;
import org.bouncycastle.asn1.cmp.PKIHeader;
import org.bouncycastle.asn1.cmp.PKIMessage;
import org.bouncycastle.asn1.cmp.PKIStatus;
import org.bouncycastle.asn1.cmp.PKIStatusInfo;
import org.bouncycastle.asn1.cmp.PollRepContent;
import org.bouncycastle.asn1.cmp.PollReqContent;
import org.bouncycastle.asn1.x509.AlgorithmIdentifier;
import org.bouncycastle.cert.X509CertificateHolder;
import org.bouncycastle.operator.DefaultDigestAlgorithmIdentifierFinder;

/** One request in, one answer out, and between them the transactions (RFC 9483, 4). It remembers
 * transactions, not messages: a request under a known transactionID gets {@code transactionIdInUse}. */
final class Desk {
  private enum State { WAITING, DELIVERED, CONFIRM_WAITING, DONE }

  /** What is known of a transactionID. */
  private static final class Transaction {
    String client;
    String operation;
    PKIBody request;
    BigInteger certReqId = BigInteger.ZERO;
    X509CertificateHolder certificate;
    State state = State.DELIVERED;
    boolean implicit;
    /** Of the last time: that a poll may be for. */
    BigInteger polledFor;
    int pollsLeft;
    long notBefore;
    /** It comes out of the books: neither its nonces nor its client are known any more. */
    boolean restored;
    final Set<String> nonces = new HashSet<>();
  }

  private final Authority authority;
  private final Books books;
  private final Gate gate;
  private final Requests requests;
  private final Map<String, Transaction> transactions = new HashMap<>();

  Desk(Authority authority, Books books, Gate gate) {
    this.authority = authority;
    this.books = books;
    this.gate = gate;
    this.requests = new Requests(authority, books);
    for (Books.Issued issued : books.issued.values()) {
      Transaction transaction = new Transaction();
      transaction.operation = issued.operation;
      transaction.certificate = issued.certificate;
      transaction.certReqId = Requests.certReqId(issued.operation);
      transaction.polledFor = transaction.certReqId;
      transaction.state = issued.confirmed ? State.DONE : State.WAITING;
      transaction.pollsLeft = 1;
      transaction.restored = true;
      transactions.put(issued.transaction, transaction);
    }
  }

  synchronized PKIMessage answer(PKIMessage message, Map<String, String> behaviour) throws Exception {
    Reply reply = new Reply();
    reply.pvno = number(behaviour, "pvno", 0);
    Gate.Client client = null;
    PKIBody body;
    try {
      client = gate.admit(message);
      body = handle(message, client, behaviour, reply);
    } catch (Refusal refusal) {
      System.err.println(Message.BODIES[message.getBody().getType()] + " refused: " + refusal.getMessage());
      body = error(refusal.status());
    }
    Transaction transaction = transactions.get(id(message));
    if (transaction != null) transaction.nonces.add(Books.hex(reply.nonce));
    return gate.seal(message, client, body, reply);
  }

  private static String id(PKIMessage message) {
    PKIHeader header = message.getHeader();
    return header.getTransactionID() == null ? "" : Books.hex(header.getTransactionID().getOctets());
  }

  private static int number(Map<String, String> behaviour, String name, int otherwise) {
    return Integer.parseInt(behaviour.getOrDefault(name, Integer.toString(otherwise)));
  }

  private PKIBody handle(PKIMessage message, Gate.Client client, Map<String, String> behaviour, Reply reply)
      throws Exception {
    PKIHeader header = message.getHeader();
    int pvno = header.getPvno().intValueExact();
    if (pvno != 2 && pvno != 3) throw new Refusal(PKIFailureInfo.unsupportedVersion, "pvno is 2 or 3");
    if (id(message).length() != 32) throw new Refusal(PKIFailureInfo.badDataFormat, "transactionID has 16 octets");
    if (header.getSenderNonce() == null || header.getSenderNonce().getOctets().length < 16) {
      throw new Refusal(PKIFailureInfo.badSenderNonce, "senderNonce has 16 octets");
    }
    Transaction known = transactions.get(id(message));
    if (known != null) {
      if (known.restored && known.client == null) known.client = client.name();
      if (!known.client.equals(client.name())) {
        throw new Refusal(PKIFailureInfo.wrongIntegrity, "the transaction began with another credential");
      }
    }
    switch (message.getBody().getType()) {
      case PKIBody.TYPE_POLL_REQ:
        return poll(message, follows(message, known), behaviour, reply);
      case PKIBody.TYPE_CERT_CONFIRM:
        return confirm(message, follows(message, known), behaviour);
      default:
        if (known != null) throw new Refusal(PKIFailureInfo.transactionIdInUse, "this transactionID is in use");
        return begin(message, client, behaviour, reply);
    }
  }

  private Transaction follows(PKIMessage message, Transaction known) throws Refusal {
    if (known == null) throw new Refusal(PKIFailureInfo.badRequest, "no transaction has this transactionID");
    byte[] nonce = message.getHeader().getRecipNonce() == null ? new byte[0] : message.getHeader().getRecipNonce().getOctets();
    // Of any of our answers: the last one may not have arrived.
    if (!known.restored && !known.nonces.contains(Books.hex(nonce))) {
      throw new Refusal(PKIFailureInfo.badRecipientNonce, "recipNonce is none of ours");
    }
    return known;
  }

  private PKIBody begin(PKIMessage message, Gate.Client client, Map<String, String> behaviour, Reply reply)
      throws Exception {
    Transaction transaction = new Transaction();
    transaction.client = client.name();
    transaction.request = message.getBody();
    transaction.operation = Message.BODIES[message.getBody().getType()];
    transaction.implicit = asksForImplicit(message.getHeader()) && Boolean.parseBoolean(behaviour.get("implicit"));
    int polls = number(behaviour, "polls", 0);
    boolean enrolls = Requests.enrolls(message.getBody());
    if (enrolls) {
      transaction.certReqId = Requests.certReqId(transaction.operation);
      transaction.certificate = requests.issue(message.getBody(), client);
      books.add("issued", id(message), transaction.operation, transaction.certificate, transaction.certificate.getSubject().toString());
    }
    transactions.put(id(message), transaction);
    if (polls == 0) return deliver(id(message), transaction, reply);
    transaction.state = State.WAITING;
    transaction.pollsLeft = polls;
    books.add("waiting", id(message), transaction.operation, transaction.certificate, "");
    PKIStatusInfo waiting = new PKIStatusInfo(PKIStatus.waiting);
    if (enrolls && !"error".equals(behaviour.get("by"))) {
      transaction.polledFor = transaction.certReqId;
      return response(transaction, new CertResponse(new ASN1Integer(transaction.certReqId), waiting));
    }
    transaction.polledFor = BigInteger.ONE.negate();
    return error(waiting);
  }

  private static boolean asksForImplicit(PKIHeader header) {
    if (header.getGeneralInfo() == null) return false;
    for (InfoTypeAndValue info : header.getGeneralInfo()) {
      if (info.getInfoType().equals(CMPObjectIdentifiers.it_implicitConfirm)) return true;
    }
    return false;
  }

  /** What was waited for, or what needs no waiting. */
  private PKIBody deliver(String id, Transaction transaction, Reply reply) throws Exception {
    if (transaction.certificate == null) {
      transaction.state = State.DONE;
      return requests.answer(id, transaction.request);
    }
    transaction.state = transaction.implicit ? State.DONE : State.DELIVERED;
    reply.implicitConfirm = transaction.implicit;
    reply.delivers = true;
    CertifiedKeyPair pair = new CertifiedKeyPair(new CertOrEncCert(new CMPCertificate(transaction.certificate.toASN1Structure())));
    PKIStatusInfo accepted = new PKIStatusInfo(PKIStatus.granted);
    return response(transaction, new CertResponse(new ASN1Integer(transaction.certReqId), accepted, pair, null));
  }

  private PKIBody response(Transaction transaction, CertResponse response) {
    boolean ir = transaction.operation.equals("ir");
    // Trust anchors may come with an ip under a shared secret alone (RFC 9483, 4.1.1).
    boolean pubs = ir && "secret".equals(transaction.client) && transaction.state != State.WAITING;
    CMPCertificate[] root = pubs ? new CMPCertificate[] {new CMPCertificate(authority.root.toASN1Structure())} : null;
    int type = ir ? PKIBody.TYPE_INIT_REP : transaction.operation.equals("kur") ? PKIBody.TYPE_KEY_UPDATE_REP : PKIBody.TYPE_CERT_REP;
    return new PKIBody(type, new CertRepMessage(root, new CertResponse[] {response}));
  }

  private PKIBody poll(PKIMessage message, Transaction transaction, Map<String, String> behaviour, Reply reply)
      throws Exception {
    if (transaction.state != State.WAITING && transaction.state != State.CONFIRM_WAITING) {
      throw new Refusal(PKIFailureInfo.badRequest, "there is nothing to poll for");
    }
    BigInteger[] ids = PollReqContent.getInstance(message.getBody().getContent()).getCertReqIdValues();
    boolean right = ids.length == 1 && (transaction.restored || ids[0].equals(transaction.polledFor));
    if (!right) throw new Refusal(PKIFailureInfo.badRequest, "the pollReq is for " + Arrays.toString(ids) + ", not " + transaction.polledFor);
    int checkAfter = number(behaviour, "checkAfter", 1);
    long now = System.currentTimeMillis();
    boolean early = now < transaction.notBefore;
    if (early) books.add("early", id(message), transaction.operation, transaction.certificate, transaction.notBefore - now + " ms");
    if (early || --transaction.pollsLeft > 0) {
      transaction.notBefore = Math.max(transaction.notBefore, now + checkAfter * 1000L);
      return new PKIBody(PKIBody.TYPE_POLL_REP, new PollRepContent(new ASN1Integer(ids[0]), new ASN1Integer(checkAfter)));
    }
    if (transaction.state == State.WAITING) return deliver(id(message), transaction, reply);
    transaction.state = State.DONE;
    return new PKIBody(PKIBody.TYPE_CONFIRM, new PKIConfirmContent());
  }

  private PKIBody confirm(PKIMessage message, Transaction transaction, Map<String, String> behaviour) throws Exception {
    if (transaction.certificate == null || (transaction.state == State.WAITING && !transaction.restored)) {
      throw new Refusal(PKIFailureInfo.badRequest, "there is nothing to confirm");
    }
    CertStatus[] statuses = CertConfirmContent.getInstance(message.getBody().getContent()).toCertStatusArray();
    if (statuses.length != 1) throw new Refusal(PKIFailureInfo.badRequest, "certConf is for one certificate");
    if (!statuses[0].getCertReqId().getValue().equals(transaction.certReqId)) {
      throw new Refusal(PKIFailureInfo.badRequest, "certConf is for another certReqId");
    }
    if (!Arrays.equals(certHash(statuses[0], transaction.certificate), statuses[0].getCertHash().getOctets())) {
      throw new Refusal(PKIFailureInfo.badCertId, "certHash is that of another certificate");
    }
    if (transaction.state == State.DONE) throw new Refusal(PKIFailureInfo.certConfirmed, "the certificate is confirmed already");
    if (transaction.state != State.CONFIRM_WAITING) {
      PKIStatusInfo status = statuses[0].getStatusInfo();
      boolean rejected = status != null && status.getStatus().intValue() == PKIStatus.REJECTION;
      books.add(rejected ? "rejected" : "confirmed", id(message), transaction.operation, transaction.certificate, "");
    }
    int polls = number(behaviour, "confPolls", 0);
    if (polls > 0) {
      transaction.state = State.CONFIRM_WAITING;
      transaction.pollsLeft = polls;
      transaction.polledFor = BigInteger.ONE.negate();
      return error(new PKIStatusInfo(PKIStatus.waiting));
    }
    transaction.state = State.DONE;
    return new PKIBody(PKIBody.TYPE_CONFIRM, new PKIConfirmContent());
  }

  /** By hashAlg, else by the hash of the certificate's signature (RFC 9810, 5.3.18). */
  private static byte[] certHash(CertStatus status, X509CertificateHolder certificate) throws Exception {
    AlgorithmIdentifier hash = null;
    for (ASN1Encodable field : ASN1Sequence.getInstance(status.toASN1Primitive())) {
      if (field instanceof ASN1TaggedObject) hash = AlgorithmIdentifier.getInstance((ASN1TaggedObject) field, true);
    }
    if (hash == null) hash = new DefaultDigestAlgorithmIdentifierFinder().find(certificate.getSignatureAlgorithm());
    return MessageDigest.getInstance(hash.getAlgorithm().getId(), "BC").digest(certificate.getEncoded());
  }

  private static PKIBody error(PKIStatusInfo status) {
    return new PKIBody(PKIBody.TYPE_ERROR, new ErrorMsgContent(status));
  }
}
