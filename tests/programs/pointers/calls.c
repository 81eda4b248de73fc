/* What compilers make of calls through pointers: how often each callee was called, and what came of it. A loop calls for
   each line of the input, and never returns. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline))

struct pair {
    long first, second;
};
struct large {
    long words[6];
};
struct port {
    long received;
    long (*burst)(struct port *, void **, unsigned short);
};

static long called[7];

NOINLINE static long plain(struct port *port, void **packets, unsigned short n)
{
    called[0]++;
    port->received += n;
    packets[0] = port;
    return n;
}

NOINLINE static long vectors(struct port *port, void **packets, unsigned short n)
{
    called[1]++;
    return plain(port, packets, n) + 1;
}

NOINLINE static struct pair pairs(long a, long b, long c, long d, long e, long f, long g, double h)
{
    called[2]++;
    return (struct pair){a + b + c + d, e + f + g + (long)h};
}

NOINLINE static struct large larges(long a, double b)
{
    called[3]++;
    struct large large = {{a, a + 1, a + 2, a + 3, a + 4, (long)b}};
    return large;
}

NOINLINE static double any(const char *format, ...)
{
    called[4]++;
    va_list list;
    va_start(list, format);
    double sum = 0;
    for (; *format; format++)
        sum += *format == 'd' ? va_arg(list, int) : va_arg(list, double);
    va_end(list);
    return sum;
}

/* Calls itself by its pointer. */
typedef long recursive(long depth, void *self);
NOINLINE static long deeper(long depth, void *self)
{
    called[5]++;
    recursive *volatile again = (recursive *)self;
    return depth == 0 ? 0 : 1 + again(depth - 1, self);
}

static struct port ports[2] = {{0, plain}, {0, vectors}};
static struct pair (*volatile make_pair)(long, long, long, long, long, long, long, double) = pairs;
static struct large (*volatile make_large)(long, double) = larges;
static double (*volatile with_any)(const char *, ...) = any;
static recursive *volatile recurse = deeper;

NOINLINE static long from_aligned(long *words)
{
    called[6]++;
    return words[7];
}

static long (*volatile of_aligned)(long *) = from_aligned;

/* Its frame is found by what it keeps of its caller's: arguments are there, too. */
NOINLINE static long aligned(long a, long b, long c, long d, long e, long f, long g, long h, long i)
{
    long words[8] __attribute__((aligned(64))) = {a, b, c, d, e, f, g, h};
    return of_aligned(words) + i;
}

NOINLINE static double poll(long round)
{
    void *packets[32];
    struct port *port = &ports[round % 2];
    double sum = port->burst(port, packets, 32);
    struct pair pair = make_pair(1, 2, 3, 4, 5, 6, round, 8.5);
    struct large large = make_large(round, 2.5);
    sum += pair.first + pair.second + large.words[4] + large.words[5];
    sum += with_any("dfdf", 1, 2.0, 3, 4.5);
    return sum + recurse(3, (void *)deeper);
}

NOINLINE static double rounds(long count, long *done)
{
    double sum = 0;
    for (long n = 0; n < count; n++)
        sum += poll((*done)++) + aligned(n, *done, n + 1, n + 2, n + 3, n + 4, n + 5, n + 6, n + 7);
    return sum;
}

/* Inlined into whoever runs it. */
static inline __attribute__((always_inline)) void answer(long count, long *done)
{
    double sum = rounds(count, done);
    printf("%.1f", sum);
    for (int n = 0; n < 7; n++)
        printf(" %ld", called[n]);
    printf("\n");
    fflush(stdout);
}

/* Of a number below zero a child makes the rounds. */
NOINLINE static void serve(long (*read_number)(void))
{
    long done = 0;
    for (;;) {
        long count = read_number();
        /* Short jumps lead into no copy. */
        asm volatile(".skip 128, 0x90");
        if (count < 0 && fork()) {
            wait(NULL);
            continue;
        }
        answer(labs(count), &done);
        if (count < 0)
            _exit(0);
    }
}

/* What calls that are over left on the stack: an address of a copy among it keeps that mapped. Where the C library's own calls do not
   overwrite it, which depends on the processor. */
NOINLINE static void forget(void)
{
    char dead[8192];
    memset(dead, 0, sizeof dead);
    asm volatile("" : : "r"(dead) : "memory");
}

static long number(void)
{
    char line[64] = "";
    forget();
    if (!fgets(line, sizeof line, stdin))
        exit(0);
    return atol(line);
}

int main(int argc, char **argv)
{
    long done = 0;
    if (argc > 1) {
        answer(atol(argv[1]), &done);
        return 0;
    }
    const char *ready = getenv("READY_FILE");
    if (ready)
        fclose(fopen(ready, "w"));
    static long (*volatile reads)(void) = number;
    serve(reads);
}
