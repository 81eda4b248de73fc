/* A router's inner loop over packets in memory: one lookup of each misses the caches, and as long as
   nothing orders them several are under way at once. The program times its batches itself.
   stdin: a number of batches a line; stdout: "ready", then the median of ticks a packet. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <x86intrin.h>

#define PACKETS 4096
#define BATCH 512
#define TABLE (1u << 23)

struct packet {
    uint32_t source, destination;
    uint16_t source_port, destination_port;
    uint32_t sum;
    uint8_t rest[48];
};

struct entry {
    uint32_t key, to;
};

static struct packet packets[PACKETS];
static struct entry *table;

__attribute__((noinline, noclone)) static uint32_t cost_hash(const struct packet *p)
{
    uint32_t h = p->source * 2654435761u ^ p->destination * 40503u ^ p->destination_port;
    h ^= h >> 15;
    h *= 2246822519u;
    return h ^ h >> 13;
}

__attribute__((noinline, noclone)) static const struct entry *cost_lookup(uint32_t hash)
{
    const struct entry *e = &table[hash & (TABLE - 1)];
    while (e->key && e->key != hash && e < table + TABLE - 1)
        e++;
    return e;
}

__attribute__((noinline, noclone)) static void cost_rewrite(struct packet *p, const struct entry *e)
{
    p->source = e->to;
    p->sum = ~p->sum + e->to;
    p->source_port ^= (uint16_t)(e->to >> 16);
}

__attribute__((noinline, noclone)) static void cost_packet(struct packet *p)
{
    cost_rewrite(p, cost_lookup(cost_hash(p)));
}

static int ascending(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

int main(void)
{
    table = calloc(TABLE, sizeof *table);
    uint64_t *ticks = NULL;
    uint32_t random = 1, round = 0;
    long batches;
    for (uint32_t i = 0; i < TABLE / 2; i++) {
        uint32_t key = i * 2654435761u | 1;
        table[key & (TABLE - 1)] = (struct entry){key, i};
    }
    for (int i = 0; i < PACKETS; i++) {
        packets[i].source = random = random * 1664525 + 1013904223;
        packets[i].destination = random = random * 1664525 + 1013904223;
    }
    puts("ready");
    fflush(stdout);
    while (scanf("%ld", &batches) == 1) {
        ticks = realloc(ticks, batches * sizeof *ticks);
        for (long b = 0; b < batches; b++) {
            uint64_t from = __rdtsc();
            for (int i = 0; i < BATCH; i++) {
                struct packet *p = &packets[(b * BATCH + i) % PACKETS];
                p->destination += ++round;
                cost_packet(p);
            }
            ticks[b] = __rdtsc() - from;
        }
        qsort(ticks, batches, sizeof *ticks, ascending);
        printf("%.1f\n", (double)ticks[batches / 2] / BATCH);
        fflush(stdout);
    }
    return 0;
}
