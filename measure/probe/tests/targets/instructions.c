// Calls two functions for each byte on its stdin: in the main thread (argument "present"), in one
// that is created after the first byte ("new"), or with a gs base of its own ("foreign").
#define _GNU_SOURCE
#include <asm/prctl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

void nothing(void);
unsigned long increment(unsigned long n);

// Two instructions, behind which every register may be read; and three, the first of which lets
// everybody know that rax and the flags hold nothing.
__asm__(".globl nothing, increment\n"
        ".type nothing, @function\n"
        ".type increment, @function\n"
        "nothing:\n"
        ".cfi_startproc\n"
        "nopl 0(%rax,%rax,1)\n"
        "ret\n"
        ".cfi_endproc\n"
        ".size nothing, . - nothing\n"
        ".balign 16\n"
        "increment:\n"
        ".cfi_startproc\n"
        "mov $1, %eax\n"
        "add %rdi, %rax\n"
        "ret\n"
        ".cfi_endproc\n"
        ".size increment, . - increment\n");

static unsigned long wrong;

static void *serve(void *unused) {
    printf("%ld\n", syscall(SYS_gettid));
    fflush(stdout);
    for (unsigned long n = 0; getchar() != EOF; n++) {
        nothing();
        wrong += increment(n) != n + 1;
    }
    return unused;
}

int main(int argc, char **argv) {
    if (argc != 2) return 2;
    puts("ready");
    fflush(stdout);
    getchar();
    static unsigned long block[8];
    memset(block, 0x41, sizeof block);
    if (!strcmp(argv[1], "foreign") && syscall(SYS_arch_prctl, ARCH_SET_GS, block)) return 3;
    pthread_t thread;
    if (strcmp(argv[1], "new")) {
        serve(NULL);
    } else if (pthread_create(&thread, NULL, serve, NULL) || pthread_join(thread, NULL)) {
        return 4;
    }
    return wrong != 0;
}
