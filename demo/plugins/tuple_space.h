/* Tuple space search (Srinivasan, Suri, Varghese 1999): one hash table for each combination of
 * prefix lengths among the rules, so that a lookup costs tables, not rules. */
#ifndef DEMO_TUPLE_SPACE_H
#define DEMO_TUPLE_SPACE_H

#include <stdbool.h>

#include "../src/rules.h"

struct tuple_space;

/* NULL when memory is short. Keeps a reference to `rules`. */
struct tuple_space *tuple_space_build(const struct rule_set *rules);
bool tuple_space_permit(const struct tuple_space *space, const struct five_tuple *flow);
void tuple_space_free(struct tuple_space *space);

#endif
