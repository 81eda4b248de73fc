/* Calls one function once. */
volatile int result;

__attribute__((noinline)) void called_once(int n) {
  for (int i = 0; i < n; i++)
    result += i;
}

int main(int argc, char **argv) {
  (void)argv;
  called_once(argc);
  return 0;
}
