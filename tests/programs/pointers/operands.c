/* Calls that many times; how often each callee was. */
#include <stdio.h>
#include <stdlib.h>

void operands(void);
extern long counts[6];

int main(int argc, char **argv)
{
    long rounds = argc > 1 ? atol(argv[1]) : 1;
    for (long n = 0; n < rounds; n++)
        operands();
    static const char *names[] = {"by_register", "by_memory", "by_table", "by_stack", "by_symbol", "by_thread"};
    for (int n = 0; n < 6; n++)
        printf("%s %ld\n", names[n], counts[n]);
    return 0;
}
