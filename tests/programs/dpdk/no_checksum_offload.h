/* Included before an example that asks its ports for checksum offloads, which the pcap device lacks
 * and without which the example works: it never looks at their result. */
#include <rte_ethdev.h>
#undef RTE_ETH_RX_OFFLOAD_CHECKSUM
#define RTE_ETH_RX_OFFLOAD_CHECKSUM 0
