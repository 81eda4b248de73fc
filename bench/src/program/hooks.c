/* Enter and leave hooks of the rebuilt peers. HOOK_RECORDS: the same 16-byte record as hopscope's;
 * otherwise empty functions. */
#ifdef HOOK_RECORDS
#include "harness.h"
struct record {
    unsigned long tsc;
    unsigned id, stack;
};
#define RECORDS 4096
static __thread struct record ring[RECORDS];
static __thread unsigned long cursor;

static inline void record(unsigned id, unsigned kind, void *stack)
{
    struct record *r = &ring[cursor++ % RECORDS];
    r->id = id << 3 | kind;
    r->stack = (unsigned)(unsigned long)stack;
    r->tsc = ticks();
}
void hook_enter(unsigned id) { record(id, 0, __builtin_frame_address(0)); }
void hook_leave(unsigned id) { record(id, 1, __builtin_frame_address(0)); }
#else
void hook_enter(unsigned id) { (void)id; }
void hook_leave(unsigned id) { (void)id; }
#endif
