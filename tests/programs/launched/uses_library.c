/* Calls the function of library.c five times. */
long library_work(long i);

int main(void) {
  long wrong = 0;
  for (long i = 0; i < 5; i++)
    wrong += library_work(i) != 2 * i + 1;
  return wrong != 0;
}
