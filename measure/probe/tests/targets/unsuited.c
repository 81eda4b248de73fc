// A process without libc, that has no thread control block (or, with -DGS, one, and a use for gs).
#include <asm/prctl.h>
#include <sys/syscall.h>

// What system calls made for hopscope run through, and every libc has.
__asm__("syscall\n"
        "ret\n"
        "mov $15, %rax\n"
        "syscall\n");

static long call(long nr, long a, long b, long c) {
    long result;
    __asm__ volatile("syscall" : "=a"(result) : "a"(nr), "D"(a), "S"(b), "d"(c) : "rcx", "r11", "memory");
    return result;
}

__attribute__((noipa)) unsigned long one_step(unsigned long n) {
    return 3 * n + 1;
}

void _start(void) {
#ifdef GS
    static unsigned long block[8];
    block[0] = (unsigned long)block;
    call(SYS_arch_prctl, ARCH_SET_FS, (long)block, 0);
    call(SYS_arch_prctl, ARCH_SET_GS, (long)block, 0);
#endif
    call(SYS_write, 1, (long)"ready\n", 6);
    unsigned long wrong = 0, gs = 0;
    char byte;
    call(SYS_read, 0, (long)&byte, 1);
    for (unsigned long n = 0; n < 1000; n++) wrong += one_step(n) != 3 * n + 1;
    call(SYS_arch_prctl, ARCH_GET_GS, (long)&gs, 0);
#ifdef GS
    wrong += gs != (unsigned long)block;
#else
    wrong += gs != 0;
#endif
    call(SYS_exit_group, wrong != 0, 0, 0);
}
