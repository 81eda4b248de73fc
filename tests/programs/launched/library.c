/* A library whose constructor calls its function, too. */
static volatile long added = 1;

__attribute__((noinline)) long library_work(long i) {
  return 2 * i + added;
}

__attribute__((constructor)) static void begin(void) {
  for (long i = 0; i < 7; i++)
    added = library_work(i) - 2 * i;
}
