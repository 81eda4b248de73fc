// Runs functions of the C library, libm, zlib and libcrypto on random inputs and says what came
// out: one line of name and hash for each, for a line "run SEED ROUNDS" on stdin.
#include "hashing.h"
#include "library.h"
#include <complex.h>
#include <ctype.h>
#include <math.h>
#include <regex.h>
#include <search.h>
#include <string.h>
#include <time.h>
#include <wchar.h>

unsigned long crc32(unsigned long, const unsigned char *, unsigned);
unsigned long adler32(unsigned long, const unsigned char *, unsigned);
int compress2(unsigned char *, unsigned long *, const unsigned char *, unsigned long, int);
int uncompress(unsigned char *, unsigned long *, const unsigned char *, unsigned long);

enum { LENGTH = 4096 };

static void fill(struct input *in, uint64_t *random) {
    in->random = next(random);
    in->length = 1 + in->random % (LENGTH - 1);
    for (unsigned i = 0; i < LENGTH; i++) {
        in->bytes[i] = (unsigned char)next(random);
        // Few different letters, so that searches find something and packing packs.
        in->text[i] = "abcab ca,bab;c\n1234567890.-e+"[next(random) % (1 + in->random % 28)];
    }
    in->text[in->length] = 0;
    in->real = (double)(int64_t)next(random) / (double)(1 + (next(random) & 0xffffffffff));
}

static uint64_t strings(struct input *in) {
    const char *t = in->text, *half = t + in->length / 2;
    char copy[LENGTH + 1];
    uint64_t sum = strlen(t) + 3 * strnlen(t, 77);
    const char *found[] = {strchr(t, 'c'), strrchr(t, 'b'), strstr(t, "abc"), strpbrk(t, ";,"),
                           memchr(t, '1', in->length), memmem(t, in->length, half, 3)};
    for (unsigned i = 0; i < 6; i++) sum = sum * 31 + (found[i] ? (uint64_t)(found[i] - t) : 9999);
    sum = sum * 31 + strspn(t, "abc ") + strcspn(t, "\n");
    int compared[] = {strcmp(t, half), strncmp(t, half, 9), strcasecmp(t, half),
                      memcmp(t, half, in->length / 4)};
    for (unsigned i = 0; i < 4; i++) sum = sum * 3 + (compared[i] > 0) + 2 * (compared[i] < 0);
    strcpy(copy, t);
    memmove(copy + in->length / 3, copy, in->length / 2);
    memset(copy, 'x', in->length % 50);
    sum = add(sum, copy, in->length);
    unsigned parts = 0;
    for (char *rest = copy, *part; (part = strsep(&rest, ",; "));) parts += strlen(part) * ++parts;
    return sum * 31 + parts;
}

static int by_value(const void *a, const void *b) {
    unsigned short x, y;
    memcpy(&x, a, 2), memcpy(&y, b, 2);
    return (x > y) - (x < y);
}

static uint64_t sorting(struct input *in) {
    unsigned char copy[LENGTH];
    memcpy(copy, in->bytes, LENGTH);
    qsort(copy, in->length / 2, 2, by_value);
    void *found = bsearch(in->bytes, copy, in->length / 2, 2, by_value);
    size_t count = 100;
    void *linear = lfind(in->bytes + 50, in->bytes, &count, 2, by_value);
    return add(START, copy, LENGTH) + (found != NULL) + (linear ? 7 : 0);
}

static uint64_t numbers(struct input *in) {
    char text[400];
    char *end;
    int length = snprintf(text, sizeof text, "%.17g|%a|%e|%f|%Lf|%lld|%#llx|%*s|%+08d|%c", in->real,
                          in->real, in->real, fmod(in->real, 1e6), (long double)in->real / 3,
                          (long long)in->random, (unsigned long long)in->random,
                          (int)(in->random % 30), "x", (int)in->random, 'a');
    uint64_t sum = add(START, text, (size_t)length);
    double back = strtod(text, &end);
    sum = add(sum, &back, sizeof back) + (uint64_t)(end - text);
    sum = sum * 31 + (uint64_t)strtoll(in->text, &end, 0) + strtoull(in->text + 1, NULL, 16);
    double scanned = 0;
    int digits = 0;
    sum += (uint64_t)sscanf(text, "%lf|%*[^|]|%*[^|]|%d", &scanned, &digits);
    sum = add(sum, &scanned, sizeof scanned);
    lldiv_t parts = lldiv((long long)in->random, 1 + (long long)in->length);
    return sum + (uint64_t)parts.quot * 3 + (uint64_t)parts.rem;
}

static uint64_t mathematics(struct input *in) {
    static double (*const functions[])(double) = {sin,  cos,   tan,   asin, atan,  exp,  exp2, expm1,
                                                  log,  log2,  log1p, sqrt, cbrt,  erf,  erfc, tgamma,
                                                  sinh, asinh, ceil,  rint, round, log10, j0,  y1};
    double small = fmod(in->real, 50), exponent;
    uint64_t sum = START;
    for (unsigned i = 0; i < sizeof functions / sizeof *functions; i++) {
        double values[] = {functions[i](small), functions[i](in->real), functions[i](small / 100)};
        sum = add(sum, values, sizeof values);
    }
    int whole;
    double values[] = {pow(fabs(small), 1.7), atan2(small, 3), hypot(small, in->real),
                       fma(small, in->real, 1), frexp(in->real, &whole), modf(in->real, &exponent),
                       nextafter(small, 9), remainder(in->real, 0.7)};
    float single[] = {sinf((float)small), powf(fabsf((float)small), 0.3f), expf((float)small / 9)};
    double complex root = csqrt(small + I * 3), power = cpow(small + I, 2.5);
    sum = add(sum, values, sizeof values), sum = add(sum, single, sizeof single);
    sum = add(sum, &root, sizeof root), sum = add(sum, &power, sizeof power);
    return sum + (uint64_t)whole;
}

static uint64_t packing(struct input *in) {
    static unsigned char packed[2 * LENGTH], unpacked[LENGTH];
    unsigned long length = sizeof packed, back = sizeof unpacked;
    const unsigned char *text = (const unsigned char *)in->text;
    int done = compress2(packed, &length, text, in->length, (int)(in->random % 10));
    int undone = uncompress(unpacked, &back, packed, length);
    int same = back == in->length && !memcmp(unpacked, text, back);
    uint64_t sums = crc32(0, in->bytes, (unsigned)in->length) * 31 + adler32(1, text, (unsigned)in->length);
    return add(sums, packed, length) + (uint64_t)(done + undone) + (same ? 0 : 0xbad);
}

static uint64_t text_tools(struct input *in) {
    regex_t pattern;
    regmatch_t matches[3];
    uint64_t sum = START;
    if (!regcomp(&pattern, "(a[bc]+).*([0-9]{2,4}|;c)", REG_EXTENDED)) {
        memset(matches, 0, sizeof matches);
        sum += (uint64_t)regexec(&pattern, in->text, 3, matches, 0);
        sum = add(sum, matches, sizeof matches);
        regfree(&pattern);
    }
    time_t when = (time_t)(in->random >> 31);
    struct tm parts;
    memset(&parts, 0, sizeof parts);
    char line[100];
    size_t length = strftime(line, sizeof line, "%A %d %B %Y %T %j %U", gmtime_r(&when, &parts));
    sum = add(sum, line, length) + (uint64_t)timegm(&parts);
    wchar_t wide[200];
    size_t wides = mbstowcs(wide, in->text, 200);
    for (size_t i = 0; i < 200 && i < wides; i++) wide[i] = (wchar_t)toupper((int)wide[i]);
    return wides <= 200 ? add(sum, wide, wides * sizeof *wide) : sum;
}

static const struct {
    const char *name;
    uint64_t (*run)(struct input *);
} GROUPS[] = {{"strings", strings},         {"sorting", sorting},       {"numbers", numbers},
              {"mathematics", mathematics}, {"packing", packing},       {"text_tools", text_tools},
              {"digests", digests},         {"ciphers", ciphers},       {"big_numbers", big_numbers}};

static void round_of_all(uint64_t seed, uint64_t rounds) {
    static struct input in;
    for (unsigned i = 0; i < sizeof GROUPS / sizeof *GROUPS; i++) {
        uint64_t random = seed + i, hash = START;
        for (uint64_t n = 0; n < rounds; n++) {
            fill(&in, &random);
            uint64_t one = GROUPS[i].run(&in);
            hash = add(hash, &one, sizeof one);
        }
        printf("%s %016" PRIx64 "\n", GROUPS[i].name, hash);
    }
}

int main(void) { return answer(round_of_all); }
