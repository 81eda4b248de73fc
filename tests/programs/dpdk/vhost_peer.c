/* A virtio network device over vhost-user: DPDK's. Gives every frame back that it gets, and counts.
 *   vhost_peer EAL… -- READY
 * Creates the file READY once front ends can connect. Ends with SIGTERM, after one line of JSON. */
#include <rte_eal.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>

enum { BURST = 32, RING = 256 };

static volatile sig_atomic_t ending;

static void end(int signal) {
  (void)signal;
  ending = 1;
}

int main(int argc, char **argv) {
  int used = rte_eal_init(argc, argv);
  if (used < 0 || argc - used < 2)
    rte_exit(2, "vhost_peer EAL... -- READY\n");
  signal(SIGTERM, end);
  struct rte_mempool *pool =
      rte_pktmbuf_pool_create("p", 4095, 64, 0, RTE_PKTMBUF_HEADROOM + 2048, SOCKET_ID_ANY);
  struct rte_eth_conf conf = {0};
  if (!pool || rte_eth_dev_configure(0, 1, 1, &conf) ||
      rte_eth_rx_queue_setup(0, 0, RING, SOCKET_ID_ANY, NULL, pool) ||
      rte_eth_tx_queue_setup(0, 0, RING, SOCKET_ID_ANY, NULL) || rte_eth_dev_start(0))
    rte_exit(2, "no device: %s\n", rte_strerror(rte_errno));
  FILE *ready = fopen(argv[used + 1], "w");
  if (!ready || fclose(ready))
    rte_exit(2, "no ready file\n");

  uint64_t received = 0, sent = 0, bytes = 0;
  while (!ending) {
    struct rte_mbuf *burst[BURST];
    uint16_t n = rte_eth_rx_burst(0, 0, burst, BURST), done = 0;
    for (uint16_t i = 0; i < n; i++)
      bytes += rte_pktmbuf_pkt_len(burst[i]);
    received += n;
    while (done < n && !ending)
      done += rte_eth_tx_burst(0, 0, burst + done, n - done);
    sent += done;
  }
  printf("{\"received\":%lu,\"sent\":%lu,\"bytes\":%lu}\n", received, sent, bytes);
  fflush(stdout);
  rte_eth_dev_stop(0);
  rte_eth_dev_close(0);
  rte_eal_cleanup();
  return 0;
}
