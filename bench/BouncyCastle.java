import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.Security;
import java.security.cert.CertPathBuilder;
import java.security.cert.CertStore;
import java.security.cert.CollectionCertStoreParameters;
import java.security.cert.PKIXBuilderParameters;
import java.security.cert.TrustAnchor;
import java.security.cert.X509CertSelector;
import java.security.cert.X509Certificate;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Set;
import java.util.stream.Stream;
import org.bouncycastle.asn1.ASN1Primitive;
import org.bouncycastle.asn1.cmp.PKIMessage;
import org.bouncycastle.cert.X509CertificateHolder;
import org.bouncycastle.cert.cmp.GeneralPKIMessage;
import org.bouncycastle.cert.cmp.ProtectedPKIMessage;
import org.bouncycastle.cert.crmf.PKMACBuilder;
import org.bouncycastle.cert.crmf.jcajce.JcePKMACValuesCalculator;
import org.bouncycastle.cert.jcajce.JcaX509CertificateConverter;
import org.bouncycastle.jce.provider.BouncyCastleProvider;
import org.bouncycastle.operator.jcajce.JcaContentVerifierProviderBuilder;

/**
 * Bouncy Castle as a contender of {@code cargo xtask bench messages}. What it is asked and how it
 * answers is said in contender.rs.
 */
public class BouncyCastle {
    /** Repetitions of everything before the first answer: the compiler of the JVM has settled. */
    private static final int WARM_UP = 4000;

    /** More than any of the messages asks for. */
    private static final int MOST_ITERATIONS = 100_000;

    private static final ThreadMXBean CLOCK = ManagementFactory.getThreadMXBean();

    /** Keeps results from being optimised away. */
    private static volatile Object sink;

    public static void main(String[] arguments) throws Exception {
        Security.addProvider(new BouncyCastleProvider());
        Path folder = Path.of(arguments[0]);
        warmUp(folder);
        var input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.US_ASCII));
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            String[] words = line.split(" ");
            try {
                System.out.println(run(words[0], Integer.parseInt(words[1]), folder, words[2]));
            } catch (Exception exception) {
                System.out.println("- " + exception.getMessage());
            }
            System.out.flush();
        }
    }

    private static void warmUp(Path folder) throws Exception {
        List<String> names = new ArrayList<>();
        try (Stream<Path> files = Files.list(folder)) {
            files.map(path -> path.getFileName().toString())
                    .filter(name -> name.endsWith(".der"))
                    .forEach(name -> names.add(name.substring(0, name.length() - 4)));
        }
        for (String measure : List.of("decode", "encode", "verify")) {
            int each = measure.equals("verify") ? WARM_UP / 10 : WARM_UP;
            for (String name : names) {
                run(measure, each, folder, name);
            }
        }
    }

    private static long run(String measure, int count, Path folder, String name) throws Exception {
        byte[] der = Files.readAllBytes(folder.resolve(name + ".der"));
        Path root = folder.resolve(name + ".root");
        return switch (measure) {
            case "decode" -> time(count, () -> sink = decode(der));
            case "encode" -> {
                PKIMessage message = decode(der);
                yield time(count, () -> must(Arrays.equals(message.getEncoded("DER"), der)));
            }
            default -> {
                if (Files.exists(root)) {
                    X509Certificate anchor = certificate(
                            new X509CertificateHolder(Files.readAllBytes(root)));
                    yield time(count, () -> must(verifySignature(der, anchor)));
                }
                char[] secret = Files.readString(folder.resolve("secret")).toCharArray();
                yield time(count, () -> must(verifyMac(der, secret)));
            }
        };
    }

    private interface Action {
        void run() throws Exception;
    }

    private static long time(int count, Action action) throws Exception {
        long start = CLOCK.getCurrentThreadCpuTime();
        for (int done = 0; done < count; done++) {
            action.run();
        }
        return CLOCK.getCurrentThreadCpuTime() - start;
    }

    private static void must(boolean right) {
        if (!right) {
            throw new IllegalStateException("wrong result");
        }
    }

    /** Header and body are read; what is inside them Bouncy Castle leaves for later. */
    private static PKIMessage decode(byte[] der) throws Exception {
        PKIMessage message = PKIMessage.getInstance(ASN1Primitive.fromByteArray(der));
        message.getHeader().getSenderNonce();
        message.getBody().getContent();
        return message;
    }

    private static boolean verifyMac(byte[] der, char[] secret) throws Exception {
        var message = new ProtectedPKIMessage(new GeneralPKIMessage(decode(der)));
        var calculator = new JcePKMACValuesCalculator().setProvider("BC");
        return message.verify(new PKMACBuilder(calculator, MOST_ITERATIONS), secret);
    }

    private static boolean verifySignature(byte[] der, X509Certificate anchor) throws Exception {
        var message = new ProtectedPKIMessage(new GeneralPKIMessage(decode(der)));
        List<X509Certificate> certificates = new ArrayList<>();
        for (X509CertificateHolder holder : message.getCertificates()) {
            certificates.add(certificate(holder));
        }
        var signer = new X509CertSelector();
        signer.setCertificate(certificates.get(0));
        var parameters = new PKIXBuilderParameters(Set.of(new TrustAnchor(anchor, null)), signer);
        parameters.setRevocationEnabled(false);
        parameters.addCertStore(CertStore.getInstance(
                "Collection", new CollectionCertStoreParameters(certificates), "BC"));
        CertPathBuilder.getInstance("PKIX", "BC").build(parameters);
        return message.verify(new JcaContentVerifierProviderBuilder()
                .setProvider("BC")
                .build(certificates.get(0)));
    }

    private static X509Certificate certificate(X509CertificateHolder holder) throws Exception {
        return new JcaX509CertificateConverter().setProvider("BC").getCertificate(holder);
    }
}
