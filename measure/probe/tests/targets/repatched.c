// A thread that does nothing but call one function, while the main thread waits for its end.
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

unsigned long hot_function(unsigned long n);

// Six instructions lie in the bytes that a jump to a copy replaces or just behind them: whoever
// changes these must know where the thread stands.
__asm__(".globl hot_function\n"
        ".type hot_function, @function\n"
        "hot_function:\n"
        ".cfi_startproc\n"
        "push %rdi\n"
        ".cfi_adjust_cfa_offset 8\n"
        "push %rdi\n"
        ".cfi_adjust_cfa_offset 8\n"
        "pop %rax\n"
        ".cfi_adjust_cfa_offset -8\n"
        "pop %rcx\n"
        ".cfi_adjust_cfa_offset -8\n"
        "push %rax\n"
        ".cfi_adjust_cfa_offset 8\n"
        "pop %rdx\n"
        ".cfi_adjust_cfa_offset -8\n"
        "lea 1(%rax,%rcx,2), %rax\n"
        "add %rdx, %rax\n"
        "ret\n"
        ".cfi_endproc\n"
        ".size hot_function, . - hot_function\n");

static atomic_bool end;

static void *call_on(void *unused) {
    static unsigned long calls, wrong;
    for (; !end; calls++) wrong += hot_function(calls) != 4 * calls + 1;
    printf("%lu calls, %lu wrong\n", calls, wrong);
    fflush(stdout);
    return unused;
}

int main(void) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, call_on, NULL)) return 3;
    puts("ready");
    fflush(stdout);
    getchar();
    end = 1;
    return pthread_join(thread, NULL) ? 4 : 0;
}
