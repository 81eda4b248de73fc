// libcrypto on random inputs; declared here, so that its headers need not be installed.
#include "hashing.h"
#include "library.h"
#include <string.h>

typedef struct context CONTEXT;
typedef struct kind KIND;
typedef struct number NUMBER;
const KIND *EVP_get_digestbyname(const char *), *EVP_get_cipherbyname(const char *);
int EVP_Digest(const void *, size_t, unsigned char *, unsigned *, const KIND *, void *);
unsigned char *HMAC(const KIND *, const void *, int, const unsigned char *, size_t, unsigned char *,
                    unsigned *);
CONTEXT *EVP_CIPHER_CTX_new(void);
void EVP_CIPHER_CTX_free(CONTEXT *);
int EVP_CipherInit_ex(CONTEXT *, const KIND *, void *, const unsigned char *, const unsigned char *, int);
int EVP_CipherUpdate(CONTEXT *, unsigned char *, int *, const unsigned char *, int);
int EVP_CipherFinal_ex(CONTEXT *, unsigned char *, int *);
NUMBER *BN_bin2bn(const unsigned char *, int, NUMBER *), *BN_new(void);
int BN_bn2bin(const NUMBER *, unsigned char *), BN_set_bit(NUMBER *, int);
int BN_mod_exp(NUMBER *, const NUMBER *, const NUMBER *, const NUMBER *, void *);
int BN_mul(NUMBER *, const NUMBER *, const NUMBER *, void *), BN_num_bits(const NUMBER *);
void *BN_CTX_new(void);
void BN_CTX_free(void *), BN_free(NUMBER *);

uint64_t digests(struct input *in) {
    static const char *const names[] = {"MD5", "SHA1", "SHA256", "SHA512", "SHA3-256", "BLAKE2b512"};
    uint64_t sum = START;
    for (unsigned i = 0; i < sizeof names / sizeof *names; i++) {
        unsigned char out[64];
        unsigned length = 0;
        const KIND *kind = EVP_get_digestbyname(names[i]);
        if (!kind || !EVP_Digest(in->bytes, in->length, out, &length, kind, NULL)) sum ^= 1;
        sum = add(sum, out, length);
        if (i == 2 && HMAC(kind, in->text, 20, in->bytes, in->length, out, &length))
            sum = add(sum, out, length);
    }
    return sum;
}

uint64_t ciphers(struct input *in) {
    static const char *const names[] = {"AES-128-CBC", "AES-256-CTR", "AES-128-GCM", "ChaCha20",
                                        "CAMELLIA-128-CBC"};
    static unsigned char hidden[4096 + 64], shown[4096 + 64];
    uint64_t sum = START;
    for (unsigned i = 0; i < sizeof names / sizeof *names; i++) {
        const KIND *kind = EVP_get_cipherbyname(names[i]);
        CONTEXT *context = EVP_CIPHER_CTX_new();
        const unsigned char *key = in->bytes + 100, *start = in->bytes + 200;
        int length = 0, last = 0, back = 0;
        int done = kind && EVP_CipherInit_ex(context, kind, NULL, key, start, 1) &&
                   EVP_CipherUpdate(context, hidden, &length, in->bytes, (int)in->length) &&
                   EVP_CipherFinal_ex(context, hidden + length, &last);
        sum = add(sum, hidden, (size_t)(length + last)) + (uint64_t)done;
        EVP_CIPHER_CTX_free(context);
        context = EVP_CIPHER_CTX_new();
        done = kind && EVP_CipherInit_ex(context, kind, NULL, key, start, 0) &&
               EVP_CipherUpdate(context, shown, &back, hidden, length + last);
        sum += (uint64_t)(done && !memcmp(shown, in->bytes, (size_t)back));
        EVP_CIPHER_CTX_free(context);
    }
    return sum;
}

uint64_t big_numbers(struct input *in) {
    void *context = BN_CTX_new();
    int length = 8 + (int)(in->random % 56);
    NUMBER *a = BN_bin2bn(in->bytes, length, NULL), *b = BN_bin2bn(in->bytes + 99, length, NULL);
    NUMBER *modulus = BN_bin2bn(in->bytes + 200, length, NULL), *result = BN_new();
    BN_set_bit(modulus, 0);
    unsigned char out[200];
    uint64_t sum = START;
    if (BN_mod_exp(result, a, b, modulus, context)) sum = add(sum, out, (size_t)BN_bn2bin(result, out));
    if (BN_mul(result, a, b, context)) sum = add(sum, out, (size_t)BN_bn2bin(result, out));
    sum += (uint64_t)BN_num_bits(result);
    BN_free(a), BN_free(b), BN_free(modulus), BN_free(result);
    BN_CTX_free(context);
    return sum;
}
