/* Nodes of DPDK's graph library: one makes packets, one classifies and rewrites them in bursts, four at a time, all of it inlined
 * into its function, as DPDK's own lookup nodes are; two take what comes out.
 *   graph_node EAL…
 * For each line "N" on stdin: N walks of the graph, and a line of what was done since the start: "walks packets classified rewritten
 * dropped sum". */
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_graph.h>
#include <rte_graph_worker.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { BURST = 32, RULES = 16, OUT = 0, DROP = 1 };

struct packet {
  uint32_t destination;
  uint16_t checksum;
  uint8_t ttl;
  uint8_t port;
};

static struct packet packets[BURST];
static uint32_t rules[RULES];
static uint64_t walks, made, classified, rewritten, dropped, sum;

/* Longest match of a few prefixes; what none matches has no port. */
static inline __attribute__((always_inline)) uint16_t classify(struct packet *packet) {
  classified++;
  for (unsigned rule = 0; rule < RULES; rule++)
    if ((packet->destination ^ rules[rule]) < 1u << (28 - rule))
      return rule;
  return RULES;
}

/* RFC 1624. */
static inline __attribute__((always_inline)) void rewrite(struct packet *packet, uint16_t rule) {
  rewritten++;
  packet->ttl--;
  uint32_t checksum = packet->checksum + 0x100u;
  packet->checksum = (uint16_t)(checksum + (checksum >> 16));
  packet->port = (uint8_t)rule;
}

static inline __attribute__((always_inline)) uint16_t next_of(struct packet *packet) {
  uint16_t rule = classify(packet);
  if (rule == RULES || packet->ttl <= 1)
    return DROP;
  rewrite(packet, rule);
  return OUT;
}

static uint16_t make(struct rte_graph *graph, struct rte_node *node, void **objs, uint16_t n) {
  (void)objs, (void)n;
  void **next = rte_node_next_stream_get(graph, node, 0, BURST);
  for (unsigned i = 0; i < BURST; i++) {
    uint32_t number = (uint32_t)made++;
    packets[i].destination = number * 2654435761u;
    packets[i].checksum = (uint16_t)number;
    packets[i].ttl = (uint8_t)(number % 7);
    next[i] = &packets[i];
  }
  rte_node_next_stream_put(graph, node, 0, BURST);
  return BURST;
}

static uint16_t lookup(struct rte_graph *graph, struct rte_node *node, void **objs, uint16_t n) {
  uint16_t at = 0;
  for (; at + 4 <= n; at += 4) {
    rte_edge_t next[4] = {next_of(objs[at]), next_of(objs[at + 1]), next_of(objs[at + 2]), next_of(objs[at + 3])};
    if (next[0] == next[1] && next[1] == next[2] && next[2] == next[3])
      rte_node_enqueue(graph, node, next[0], &objs[at], 4);
    else
      rte_node_enqueue_next(graph, node, next, &objs[at], 4);
  }
  for (; at < n; at++)
    rte_node_enqueue_x1(graph, node, next_of(objs[at]), objs[at]);
  return n;
}

static uint16_t out(struct rte_graph *graph, struct rte_node *node, void **objs, uint16_t n) {
  (void)graph, (void)node;
  for (unsigned i = 0; i < n; i++) {
    const struct packet *packet = objs[i];
    sum += packet->checksum + packet->ttl + packet->port;
  }
  return n;
}

static uint16_t drop(struct rte_graph *graph, struct rte_node *node, void **objs, uint16_t n) {
  (void)graph, (void)node, (void)objs;
  dropped += n;
  return n;
}

static struct rte_node_register make_node = {
    .name = "make", .process = make, .flags = RTE_NODE_SOURCE_F, .nb_edges = 1, .next_nodes = {"lookup"}};
static struct rte_node_register lookup_node = {
    .name = "lookup", .process = lookup, .nb_edges = 2, .next_nodes = {[OUT] = "out", [DROP] = "drop"}};
static struct rte_node_register out_node = {.name = "out", .process = out};
static struct rte_node_register drop_node = {.name = "drop", .process = drop};
RTE_NODE_REGISTER(make_node)
RTE_NODE_REGISTER(lookup_node)
RTE_NODE_REGISTER(out_node)
RTE_NODE_REGISTER(drop_node)

int main(int argc, char **argv) {
  if (rte_eal_init(argc, argv) < 0)
    rte_exit(2, "EAL: %s\n", rte_strerror(rte_errno));
  for (unsigned rule = 0; rule < RULES; rule++)
    rules[rule] = rule * 0x13579bdf;
  const char *nodes[] = {"make"};
  struct rte_graph_param param = {.socket_id = SOCKET_ID_ANY, .nb_node_patterns = 1, .node_patterns = nodes};
  if (rte_graph_create("test", &param) == RTE_GRAPH_ID_INVALID)
    rte_exit(2, "graph: %s\n", rte_strerror(rte_errno));
  struct rte_graph *graph = rte_graph_lookup("test");
  const char *ready = getenv("READY_FILE");
  FILE *file = ready ? fopen(ready, "w") : NULL;
  if (file)
    fclose(file);
  char line[64];
  while (fgets(line, sizeof line, stdin)) {
    for (int left = atoi(line); left > 0; left--, walks++)
      rte_graph_walk(graph);
    printf("%lu %lu %lu %lu %lu %lu\n", walks, made, classified, rewritten, dropped, sum);
    fflush(stdout);
  }
  return 0;
}
