/* Which port a MAC address was last seen at, per VLAN; shared by all workers. */
#ifndef DEMO_MAC_TABLE_H
#define DEMO_MAC_TABLE_H

#include <stdint.h>

#define MAC_PORT_UNKNOWN (-1)

struct mac_table;

/* NULL when memory is short. */
struct mac_table *mac_table_new(uint64_t age_s);
void mac_table_learn(struct mac_table *table, uint64_t key, uint8_t port, uint64_t now_s);
/* MAC_PORT_UNKNOWN for addresses never seen, or not for age_s. */
int mac_table_find(const struct mac_table *table, uint64_t key, uint64_t now_s);
void mac_table_free(struct mac_table *table);

#endif
