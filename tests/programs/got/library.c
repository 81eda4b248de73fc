// What others call: `three` by a jump at its entry, too; the rest is in hand-written code.
int three(int x) {
    return x * 3;
}

int compared(int x) {
    return x + 7;
}

// Calls itself, and `three`, past its own table.
__attribute__((noinline)) int deep(int n) {
    return n == 0 ? three(1) : deep(n - 1) + 1;
}
