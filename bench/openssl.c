/*
 * OpenSSL as a contender of `cargo xtask bench messages`, on whichever libcrypto it is linked
 * with. What it is asked and how it answers is said in contender.rs.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <openssl/cmp.h>
#include <openssl/err.h>
#include <openssl/x509.h>

/* The longest path of a file, and the longest line that is asked. */
#define LINE 4096

static const char *folder;

struct octets {
    unsigned char *start;
    long length;
};

/* What a message is believed by. */
struct trust {
    X509_STORE *roots;
    STACK_OF(X509) *between;
    struct octets secret;
};

static int read_file(const char *name, const char *extension, struct octets *to)
{
    char path[LINE];
    FILE *file;

    to->start = NULL;
    if (snprintf(path, sizeof(path), "%s/%s%s", folder, name, extension) >= (int)sizeof(path))
        return 0;
    if ((file = fopen(path, "rb")) == NULL)
        return 0;
    fseek(file, 0, SEEK_END);
    to->length = ftell(file);
    rewind(file);
    to->start = malloc((size_t)to->length + 1);
    if (to->start == NULL || fread(to->start, 1, (size_t)to->length, file) != (size_t)to->length)
        exit(2);
    fclose(file);
    return 1;
}

static long long thread_nanos(void)
{
    struct timespec now;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return now.tv_sec * 1000000000LL + now.tv_nsec;
}

static int silent(const char *function, const char *file, int line, OSSL_CMP_severity severity,
                  const char *text)
{
    (void)function, (void)file, (void)line, (void)severity, (void)text;
    return 1;
}

static OSSL_CMP_MSG *parse(const struct octets *der)
{
    const unsigned char *at = der->start;

    return d2i_OSSL_CMP_MSG(NULL, &at, der->length);
}

static X509 *certificate_of(const struct octets *der)
{
    const unsigned char *at = der->start;

    return d2i_X509(NULL, &at, der->length);
}

static OSSL_CMP_CTX *context(const struct trust *trust)
{
    OSSL_CMP_CTX *ctx = OSSL_CMP_CTX_new(NULL, NULL);

    OSSL_CMP_CTX_set_log_cb(ctx, silent);
    if (trust->roots != NULL) {
        X509_STORE_up_ref(trust->roots);
        OSSL_CMP_CTX_set0_trustedStore(ctx, trust->roots);
        OSSL_CMP_CTX_set1_untrusted(ctx, trust->between);
    } else {
        OSSL_CMP_CTX_set1_secretValue(ctx, trust->secret.start, (int)trust->secret.length);
    }
    return ctx;
}

static int decode(const struct octets *der, unsigned long count)
{
    while (count-- > 0) {
        OSSL_CMP_MSG *message = parse(der);

        if (message == NULL)
            return 0;
        OSSL_CMP_MSG_free(message);
    }
    return 1;
}

static int encode(const struct octets *der, const OSSL_CMP_MSG *message, unsigned long count)
{
    while (count-- > 0) {
        unsigned char *out = NULL;
        int same = i2d_OSSL_CMP_MSG(message, &out) == der->length
                   && memcmp(out, der->start, (size_t)der->length) == 0;

        OPENSSL_free(out);
        if (!same)
            return 0;
    }
    return 1;
}

/*
 * Only a whole transaction takes the certificates of the message for its path, so the one between
 * signer and root is given, and OpenSSL is spared reading it.
 *
 * A context remembers the signer that it has traced to a root, so each signature gets its own. For
 * a MAC one is enough.
 */
static int verify(const struct octets *der, const struct trust *trust, unsigned long count)
{
    OSSL_CMP_CTX *shared = trust->roots == NULL ? context(trust) : NULL;
    int valid = 1;

    while (valid && count-- > 0) {
        OSSL_CMP_CTX *ctx = shared != NULL ? shared : context(trust);
        OSSL_CMP_MSG *message = parse(der);

        valid = message != NULL && OSSL_CMP_validate_msg(ctx, message);
        OSSL_CMP_MSG_free(message);
        if (shared == NULL)
            OSSL_CMP_CTX_free(ctx);
    }
    OSSL_CMP_CTX_free(shared);
    return valid;
}

static void answer(const char *measure, unsigned long count, const char *name)
{
    struct octets der, root, between = {NULL, 0};
    struct trust trust = {NULL, NULL, {NULL, 0}};
    OSSL_CMP_MSG *message;
    long long start, took;
    int done;

    if (!read_file(name, ".der", &der)) {
        printf("- no such message\n");
        return;
    }
    if (read_file(name, ".root", &root) && read_file(name, ".sub", &between)) {
        X509 *certificate = certificate_of(&root);

        trust.roots = X509_STORE_new();
        X509_STORE_add_cert(trust.roots, certificate);
        X509_free(certificate);
        trust.between = sk_X509_new_null();
        sk_X509_push(trust.between, certificate_of(&between));
    } else if (!read_file("secret", "", &trust.secret)) {
        printf("- no secret\n");
        return;
    }
    message = parse(&der);
    start = thread_nanos();
    if (strcmp(measure, "decode") == 0)
        done = decode(&der, count);
    else if (strcmp(measure, "encode") == 0)
        done = message != NULL && encode(&der, message, count);
    else
        done = verify(&der, &trust, count);
    took = thread_nanos() - start;
    if (done) {
        printf("%lld\n", took);
    } else {
        const char *why = ERR_reason_error_string(ERR_peek_last_error());

        printf("- %s\n", why != NULL ? why : "the octets differ");
        ERR_clear_error();
    }
    OSSL_CMP_MSG_free(message);
    X509_STORE_free(trust.roots);
    sk_X509_pop_free(trust.between, X509_free);
    free(between.start);
    free(trust.secret.start);
    free(root.start);
    free(der.start);
}

int main(int argc, char **argv)
{
    char line[LINE], measure[16], name[64];
    unsigned long count;

    if (argc != 2)
        return 2;
    folder = argv[1];
    while (fgets(line, sizeof(line), stdin) != NULL) {
        if (sscanf(line, "%15s %lu %63s", measure, &count, name) == 3)
            answer(measure, count, name);
        else
            printf("- MEASURE COUNT MESSAGE\n");
        fflush(stdout);
    }
    return 0;
}
