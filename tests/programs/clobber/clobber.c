/* Calls functions with every register, flag and vector full of noise, and compares what comes back
 * with what came back before anybody measured. On SIGTERM says how often something differed. */
#include <cpuid.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct state {
  uint64_t gpr[16]; /* as encoded; [4] becomes rsp after less rsp before */
  uint64_t flags;
  uint64_t stack[16]; /* above the return address */
  uint8_t *vectors;   /* XSAVE area: x87, SSE, AVX, opmask, ZMM */
};

void harness_call(const struct state *in, struct state *out, void (*function)(void));

#define FUNCTIONS(F)                                                                               \
  F(clobber_nothing) F(clobber_rax) F(clobber_flags) F(clobber_tail) F(clobber_tail_if)            \
  F(clobber_tail_memory) F(clobber_table) F(clobber_out_of_table) F(clobber_calls)
#define DECLARE(f) void f(void);
FUNCTIONS(DECLARE)
#define ENTRY(f) {#f, f},
static const struct { const char *name; void (*call)(void); } functions[] = {FUNCTIONS(ENTRY)};
enum { COUNT = sizeof functions / sizeof *functions, SEEDS = 64 };

static volatile sig_atomic_t stop;
static void on_term(int signal) { (void)signal; stop = 1; }

static uint64_t noise_state = 88172645463325252u;
static uint64_t noise(void) {
  noise_state ^= noise_state << 13;
  noise_state ^= noise_state >> 7;
  return noise_state ^= noise_state << 17;
}

static size_t area_bytes;
static uint64_t components;
static void look_at_processor(void) {
  unsigned a, b, c, d;
  if (!__get_cpuid_count(1, 0, &a, &b, &c, &d) || !(c & bit_OSXSAVE)) {
    fputs("clobber: no XSAVE\n", stderr);
    exit(3);
  }
  unsigned low, high;
  __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  components = low & 0xe7;
  __get_cpuid_count(0xd, 0, &a, &b, &c, &d);
  area_bytes = (b + 63) & ~63ul;
}

static uint8_t *new_area(void) {
  uint8_t *area = aligned_alloc(64, area_bytes);
  memset(area, 0, area_bytes);
  return area;
}

static void fill(struct state *s, unsigned seed) {
  for (int i = 0; i < 16; i++)
    s->gpr[i] = noise(), s->stack[i] = noise();
  /* CF PF AF ZF SF OF, each combination once */
  static const unsigned bits[] = {0x1, 0x4, 0x10, 0x40, 0x80, 0x800};
  s->flags = 0x202;
  for (int i = 0; i < 6; i++)
    if (seed >> i & 1)
      s->flags |= bits[i];
  uint8_t *area = s->vectors = new_area();
  for (size_t i = 576; i + 8 <= area_bytes; i += 8) {
    uint64_t n = noise();
    memcpy(area + i, &n, 8);
  }
  for (size_t i = 160; i < 416; i += 8) { /* xmm */
    uint64_t n = noise();
    memcpy(area + i, &n, 8);
  }
  for (size_t i = 32; i < 160; i += 16) { /* st, 10 bytes each */
    uint64_t n = noise();
    memcpy(area + i, &n, 8);
    memcpy(area + i + 8, &n, 2);
  }
  uint16_t fcw = (uint16_t)(0x033f | (noise() & 0x0c00)), fsw = (uint16_t)(noise() & 0x7800);
  memcpy(area, &fcw, 2);
  memcpy(area + 2, &fsw, 2);
  area[4] = (uint8_t)noise();                                     /* tags */
  uint32_t mxcsr = 0x1f80 | ((uint32_t)noise() & 0xe07f) ;        /* all exceptions masked */
  memcpy(area + 24, &mxcsr, 4);
  memcpy(area + 512, &components, 8);
}

/* Name of the first thing that differs, or NULL. */
static const char *differs(const struct state *a, const struct state *b) {
  static const char *const names[] = {"rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi",
                                      "r8",  "r9",  "r10", "r11", "r12", "r13", "r14", "r15"};
  for (int i = 0; i < 16; i++)
    if (a->gpr[i] != b->gpr[i])
      return names[i];
  if (a->flags != b->flags)
    return "flags";
  if (memcmp(a->stack, b->stack, sizeof a->stack))
    return "the caller's stack";
  if (memcmp(a->vectors, b->vectors, 32))
    return "x87 control or mxcsr";
  if (memcmp(a->vectors + 32, b->vectors + 32, 128))
    return "x87 registers";
  return memcmp(a->vectors + 160, b->vectors + 160, area_bytes - 160) ? "vector registers" : NULL;
}

int main(void) {
  look_at_processor();
  static struct state in[SEEDS], bare[COUNT][SEEDS], now;
  for (unsigned seed = 0; seed < SEEDS; seed++) {
    fill(&in[seed], seed);
    for (unsigned f = 0; f < COUNT; f++) {
      bare[f][seed].vectors = new_area();
      harness_call(&in[seed], &bare[f][seed], functions[f].call);
    }
  }
  /* What does nothing must have changed nothing: the harness itself is right. */
  for (unsigned seed = 0; seed < SEEDS; seed++) {
    struct state unchanged = bare[0][seed];
    memcpy(unchanged.gpr, in[seed].gpr, sizeof unchanged.gpr);
    unchanged.gpr[4] = (uint64_t)-136;
    const char *what = differs(&unchanged, &bare[0][seed]);
    if (what || (in[seed].flags & 0x8d5) != (bare[0][seed].flags & 0x8d5) ||
        memcmp(in[seed].stack, bare[0][seed].stack, sizeof in[seed].stack) ||
        memcmp(in[seed].vectors + 160, bare[0][seed].vectors + 160, 256)) {
      fprintf(stderr, "clobber: the harness changes %s\n", what ? what : "flags, stack or vectors");
      return 3;
    }
  }
  struct sigaction action = {.sa_handler = on_term};
  sigaction(SIGTERM, &action, NULL);
  const char *path = getenv("READY_FILE");
  FILE *file = path ? fopen(path, "w") : NULL;
  if (file)
    fclose(file);

  now.vectors = new_area();
  unsigned long rounds = 0, wrong = 0;
  for (; !stop; rounds++)
    for (unsigned f = 0; f < COUNT; f++)
      for (unsigned seed = 0; seed < SEEDS; seed++) {
        memset(now.vectors, 0, area_bytes);
        harness_call(&in[seed], &now, functions[f].call);
        const char *what = differs(&bare[f][seed], &now);
        if (what && wrong++ < 5)
          fprintf(stderr, "%s changes %s (seed %u)\n", functions[f].name, what, seed);
      }
  printf("clobber: %lu rounds, %lu wrong\n", rounds, wrong);
  return wrong != 0 || rounds == 0;
}
