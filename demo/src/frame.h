/* A frame: up to 256 packets that walk through the modules together. */
#ifndef DEMO_FRAME_H
#define DEMO_FRAME_H

#include <stdbool.h>
#include <stdint.h>

#define FRAME_PACKETS_MAX 256
#define PORTS_MAX 4
#define PACKET_BYTES_MIN 14
/* 1,500 bytes of payload, the Ethernet header and one VLAN tag; no FCS. */
#define PACKET_BYTES_MAX 1518

enum ether_type {
	ETHER_IPV4 = 0x0800,
	ETHER_ARP = 0x0806,
	ETHER_VLAN = 0x8100,
	ETHER_VLAN_OUTER = 0x88a8,
};

/* Ports are 0 for protocols without them. Host byte order. */
struct five_tuple {
	uint32_t source;
	uint32_t destination;
	uint16_t source_port;
	uint16_t destination_port;
	uint8_t protocol;
};

struct packet {
	uint8_t *data;
	uint32_t length;
	uint32_t out_ports;       /* bit n: leaves through port n; set by l2_forward */
	uint64_t source_key;      /* MAC and VLAN, as the MAC table wants them */
	uint64_t destination_key;
	struct five_tuple flow;   /* valid when has_flow */
	uint16_t ether_type;      /* behind the VLAN tag */
	uint16_t l3_offset;
	uint16_t vlan;            /* 0: untagged */
	uint8_t in_port;
	bool has_flow;
	bool permitted;
};

/* Packets stay where they are; modules drop one by leaving its index out of `alive`. */
struct frame {
	uint32_t received;
	uint32_t count;
	uint16_t alive[FRAME_PACKETS_MAX];
	struct packet packets[FRAME_PACKETS_MAX];
	uint32_t tx_count[PORTS_MAX];
	uint16_t tx[PORTS_MAX][FRAME_PACKETS_MAX];
};

static inline uint16_t load_be16(const uint8_t *at)
{
	return (uint16_t)(at[0] << 8 | at[1]);
}

static inline uint32_t load_be32(const uint8_t *at)
{
	return (uint32_t)load_be16(at) << 16 | load_be16(at + 2);
}

static inline void store_be16(uint8_t *at, uint16_t value)
{
	at[0] = (uint8_t)(value >> 8);
	at[1] = (uint8_t)value;
}

static inline void store_be32(uint8_t *at, uint32_t value)
{
	store_be16(at, (uint16_t)(value >> 16));
	store_be16(at + 2, (uint16_t)value);
}

#endif
