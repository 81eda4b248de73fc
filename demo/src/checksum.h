/* Internet checksums (RFC 1071) of the packets we build, and of those the kernel left unfinished. */
#ifndef DEMO_CHECKSUM_H
#define DEMO_CHECKSUM_H

#include <stdbool.h>
#include <stdint.h>

uint16_t checksum(const uint8_t *data, uint32_t length, uint32_t sum);
/* Sum of an IPv4 pseudo header (RFC 9293 3.1), to start an L4 checksum with. */
uint32_t checksum_pseudo_header(const uint8_t *ipv4, uint8_t protocol, uint32_t l4_length);
/* For an untagged frame whose TCP or UDP checksum field holds only the pseudo-header sum.
 * False when the frame is no such packet. */
bool checksum_finish(uint8_t *frame, uint32_t length);

#endif
