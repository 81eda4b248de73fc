#include <pthread.h>
#ifdef ONLY_EXITS
void leave(void) { pthread_exit(0); }
#else
int stop(pthread_t thread) { return pthread_cancel(thread) + 1; }
#endif
