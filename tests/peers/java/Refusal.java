import org.bouncycastle.asn1.cmp.PKIFailureInfo;
import org.bouncycastle.asn1.cmp.PKIFreeText;
import org.bouncycastle.asn1.cmp.PKIStatus;
import org.bouncycastle.asn1.cmp.PKIStatusInfo;

/** Why a request gets nothing, in the words of the protocol. */
final class Refusal extends Exception {
  private static final long serialVersionUID = 1L;
  private final int failInfo;

  /** {@code failInfo} is one of the masks of {@link PKIFailureInfo}. */
  Refusal(int failInfo, String text) {
    super(text);
    this.failInfo = failInfo;
  }

  PKIStatusInfo status() {
    return new PKIStatusInfo(PKIStatus.rejection, new PKIFreeText(getMessage()), new PKIFailureInfo(failInfo));
  }
}
