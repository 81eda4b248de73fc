// Calls `odd`, past its table or through it, as it is linked.
int odd(int);

__attribute__((noinline)) int within(int n) {
    int sum = 0;
    for (int i = 0; i < n; i++) sum += odd(i);
    return sum;
}
