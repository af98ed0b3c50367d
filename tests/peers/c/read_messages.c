/* Reads CMP messages with OpenSSL's libcrypto and writes them again. Arguments: files in DER.
   Prints for each its name, a tab, and the number of its body, or `refused`, or `changed`. */

#include <openssl/cmp.h>
#include <openssl/err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *file_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash == NULL ? path : slash + 1;
}

static unsigned char *contents(const char *path, long *length) {
    FILE *file = fopen(path, "rb");
    unsigned char *octets = NULL;

    if (file != NULL && fseek(file, 0, SEEK_END) == 0 && (*length = ftell(file)) > 0
            && fseek(file, 0, SEEK_SET) == 0 && (octets = malloc(*length)) != NULL
            && fread(octets, 1, *length, file) != (size_t)*length) {
        free(octets);
        octets = NULL;
    }
    if (file != NULL)
        fclose(file);
    if (octets == NULL) {
        fprintf(stderr, "%s cannot be read\n", path);
        exit(1);
    }
    return octets;
}

int main(int count, char **files) {
    for (int i = 1; i < count; i++) {
        long length = 0;
        unsigned char *der = contents(files[i], &length);
        const unsigned char *at = der;
        unsigned char *again = NULL;
        OSSL_CMP_MSG *message = d2i_OSSL_CMP_MSG(NULL, &at, length);

        printf("%s\t", file_name(files[i]));
        if (message == NULL || at != der + length)
            printf("refused: %s\n", ERR_reason_error_string(ERR_peek_last_error()));
        else if (i2d_OSSL_CMP_MSG(message, &again) != length || memcmp(again, der, length) != 0)
            printf("changed\n");
        else
            printf("body %d\n", OSSL_CMP_MSG_get_bodytype(message));
        OPENSSL_free(again);
        OSSL_CMP_MSG_free(message);
        ERR_clear_error();
        free(der);
    }
    return 0;
}
