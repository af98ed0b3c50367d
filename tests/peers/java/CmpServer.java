import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.net.InetSocketAddress;
import java.nio.file.Path;
import java.security.Security;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.Executors;
import org.bouncycastle.asn1.ASN1Primitive;
import org.bouncycastle.asn1.cmp.PKIMessage;
import org.bouncycastle.jce.provider.BouncyCastleProvider;

/** A CA that speaks CMP over HTTP, on Bouncy Castle. Arguments: the folder of the PKI, the folder of
 * the books, the name and the text of the shared secret; then the port, unless any will do. Prints
 * its URL.
 *
 * <p>How it behaves is in the path of each URL, so that one server serves many tests:
 * {@code /polls=2/checkAfter=1/pkix/} makes its clients wait twice.
 * <ul>
 * <li>{@code polls}: answers to a request before the one that counts; {@code confPolls}: to certConf
 * <li>{@code checkAfter}: seconds between two polls; who comes earlier is told again
 * <li>{@code by=error}: waiting is said by an error in answer to a request for a certificate too
 * <li>{@code implicit=true}: implicit confirmation is granted to who asks for it
 * <li>{@code pvno=3}: of the answers, whatever that of the request
 * </ul> */
public final class CmpServer {
  public static void main(String[] arguments) throws Exception {
    Security.addProvider(new BouncyCastleProvider());
    Pki pki = new Pki(Path.of(arguments[0]));
    Path folder = Path.of(arguments[1]);
    Books books = new Books(folder);
    Authority authority = new Authority(pki, folder, books);
    Gate gate = new Gate(authority, pki, arguments[2], arguments[3]);
    Desk desk = new Desk(authority, books, gate);
    int port = arguments.length > 4 ? Integer.parseInt(arguments[4]) : 0;
    HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", port), 50);
    server.createContext("/", exchange -> answer(exchange, desk));
    server.setExecutor(Executors.newFixedThreadPool(8));
    server.start();
    System.out.println("http://127.0.0.1:" + server.getAddress().getPort() + "/");
  }

  private static void answer(HttpExchange exchange, Desk desk) {
    try {
      byte[] request = exchange.getRequestBody().readAllBytes();
      byte[] answer = new byte[0];
      int status = 200;
      try {
        PKIMessage message = PKIMessage.getInstance(ASN1Primitive.fromByteArray(request));
        answer = desk.answer(message, behaviour(exchange.getRequestURI().getPath())).getEncoded("DER");
      } catch (Exception | StackOverflowError defect) {
        // Nothing that a peer of the RFC sends comes here.
        defect.printStackTrace();
        status = 500;
      }
      exchange.getResponseHeaders().set("Content-Type", "application/pkixcmp");
      exchange.sendResponseHeaders(status, answer.length == 0 ? -1 : answer.length);
      if (answer.length > 0) exchange.getResponseBody().write(answer);
    } catch (java.io.IOException gone) {
      System.err.println("a client is gone: " + gone.getMessage());
    } finally {
      exchange.close();
    }
  }

  private static Map<String, String> behaviour(String path) {
    Map<String, String> behaviour = new HashMap<>();
    for (String part : path.split("/")) {
      int equals = part.indexOf('=');
      if (equals > 0) behaviour.put(part.substring(0, equals), part.substring(equals + 1));
    }
    return behaviour;
  }
}
