/* A driver of a virtio network device over vhost-user: DPDK's. Sends numbered frames of all lengths, in bursts of all
 * sizes and in up to nine pieces (one descriptor, a table of them, a chain), so many of them under way at once,
 * takes them back, and compares every byte.
 *   virtio_peer EAL… -- COUNT WINDOW TABLES
 * TABLES 0: no frames that the driver would put into tables. Its packed ones mark their header as to be written (22.11).
 * Says "started" when the device is, then one line of JSON. Ends with 1 when a frame did not come back as it was. */
#include <rte_cycles.h>
#include <rte_eal.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BURST = 32, SHORTEST = 60, LONGEST = 1514, KIND = 0x88b5, PATIENCE_S = 20, RING = 256 };

static uint64_t mix(uint64_t x) {
  x ^= x >> 33, x *= 0xff51afd7ed558ccdull, x ^= x >> 33;
  return x;
}

static uint16_t make(uint64_t number, uint8_t *frame) {
  uint16_t length = SHORTEST + mix(number) % (LONGEST - SHORTEST + 1);
  memset(frame, 2, 12);
  frame[12] = KIND >> 8, frame[13] = KIND & 0xff;
  memcpy(frame + 14, &number, 8);
  for (uint16_t at = 22; at < length; at++)
    frame[at] = mix(number * LONGEST + at);
  return length;
}

/* In pieces of about the same length; NULL without buffers. */
static struct rte_mbuf *pack(struct rte_mempool *from, const uint8_t *frame, uint16_t length, uint16_t pieces) {
  struct rte_mbuf *first = NULL;
  for (uint16_t n = 0, done = 0; n < pieces; n++) {
    uint16_t part = n + 1 == pieces ? length - done : length / pieces;
    struct rte_mbuf *one = rte_pktmbuf_alloc(from);
    if (one)
      memcpy(rte_pktmbuf_append(one, part), frame + done, part);
    if (one && first && rte_pktmbuf_chain(first, one))
      rte_pktmbuf_free(one), one = NULL;
    if (!one) {
      rte_pktmbuf_free(first);
      return NULL;
    }
    first = first ? first : one, done += part;
  }
  return first;
}

int main(int argc, char **argv) {
  int used = rte_eal_init(argc, argv);
  if (used < 0 || argc - used < 4)
    rte_exit(2, "virtio_peer EAL... -- COUNT WINDOW TABLES\n");
  uint64_t count = strtoull(argv[used + 1], NULL, 10), window = strtoull(argv[used + 2], NULL, 10);
  int tables = atoi(argv[used + 3]) != 0;
  struct rte_mempool *sending = rte_pktmbuf_pool_create("s", 2047, 64, 0, 2048, SOCKET_ID_ANY);
  /* Short ones, so that most frames take several. */
  struct rte_mempool *receiving =
      rte_pktmbuf_pool_create("r", 2047, 64, 0, RTE_PKTMBUF_HEADROOM + 512, SOCKET_ID_ANY);
  struct rte_eth_conf conf = {.rxmode = {.offloads = RTE_ETH_RX_OFFLOAD_SCATTER},
                              .txmode = {.offloads = RTE_ETH_TX_OFFLOAD_MULTI_SEGS}};
  if (!sending || !receiving || rte_eth_dev_configure(0, 1, 1, &conf) ||
      rte_eth_rx_queue_setup(0, 0, RING, SOCKET_ID_ANY, NULL, receiving) ||
      rte_eth_tx_queue_setup(0, 0, RING, SOCKET_ID_ANY, NULL) || rte_eth_dev_start(0))
    rte_exit(2, "no device: %s\n", rte_strerror(rte_errno));
  printf("started\n");
  fflush(stdout);

  uint64_t sent = 0, received = 0, wrong = 0, disorder = 0, others = 0, segments = 0, bytes = 0;
  uint64_t last = rte_get_timer_cycles();
  static uint8_t frame[LONGEST], came[LONGEST];
  while (received < count && rte_get_timer_cycles() - last < PATIENCE_S * rte_get_timer_hz()) {
    struct rte_mbuf *burst[BURST];
    uint16_t want = 1 + mix(sent + 1) % BURST, ready = 0;
    while (ready < want && sent + ready < count && sent + ready - received < window) {
      static const uint16_t pieces[2][5] = {{1, 1, 1, 9, 9}, {1, 1, 2, 5, 9}};
      uint64_t number = sent + ready;
      burst[ready] = pack(sending, frame, make(number, frame), pieces[tables][mix(number * 3) % 5]);
      if (!burst[ready])
        break;
      ready++;
    }
    uint16_t went = ready ? rte_eth_tx_burst(0, 0, burst, ready) : 0;
    for (uint16_t i = 0; i < ready; i++) {
      if (i < went)
        bytes += make(sent + i, frame);
      else
        rte_pktmbuf_free(burst[i]);
    }
    sent += went;
    uint16_t n = rte_eth_rx_burst(0, 0, burst, BURST);
    for (uint16_t i = 0; i < n; i++) {
      uint32_t length = rte_pktmbuf_pkt_len(burst[i]);
      const uint8_t *data = length <= LONGEST ? rte_pktmbuf_read(burst[i], 0, length, came) : NULL;
      uint64_t number;
      if (!data || length < SHORTEST || data[12] != KIND >> 8 || data[13] != (KIND & 0xff)) {
        others++;
      } else {
        memcpy(&number, data + 14, 8);
        disorder += number != received;
        wrong += make(number, frame) != length || memcmp(frame, data, length);
        segments += burst[i]->nb_segs;
        received++;
        last = rte_get_timer_cycles();
      }
      rte_pktmbuf_free(burst[i]);
    }
  }
  printf("{\"sent\":%lu,\"bytes\":%lu,\"received\":%lu,\"wrong\":%lu,\"disorder\":%lu,\"others\":%lu,\"segments\":%lu}\n",
         sent, bytes, received, wrong, disorder, others, segments);
  fflush(stdout);
  rte_eth_dev_stop(0);
  rte_eth_dev_close(0);
  rte_eal_cleanup();
  return received != count || wrong || disorder;
}
