/** What an answer's header says besides what every answer's header says. */
final class Reply {
  final byte[] nonce = Authority.random(16);
  /** 0: that of the request. */
  int pvno;
  boolean implicitConfirm;
  /** It brings a certificate. */
  boolean delivers;
}
