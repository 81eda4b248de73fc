/* Included before an example that asks its ports for checksum offloads, which ports that replay a
 * file or discard what they get lack, and without which the example works. */
#include <rte_ethdev.h>
#undef RTE_ETH_RX_OFFLOAD_CHECKSUM
#define RTE_ETH_RX_OFFLOAD_CHECKSUM 0
