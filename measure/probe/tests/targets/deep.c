// A signal handler that runs while a function stands at its second instruction, and goes as many KiB
// deep into the stack as it is told to.
#define _GNU_SOURCE
#include <alloca.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>

// Stores 5 to where its argument points: the store is the second instruction and within the first five bytes.
void interrupted_function(int *at);
__asm__(".text\n.globl interrupted_function\n.type interrupted_function, @function\n"
        "interrupted_function:\n\tnop\n\tmovl $5, (%rdi)\n\txorl %eax, %eax\n\tret\n"
        ".size interrupted_function, . - interrupted_function\n");

__attribute__((noinline)) unsigned kept_function(unsigned n) {
    unsigned sum = 0;
    while (n) {
        sum += n--;
        __asm__ volatile("" : "+r"(sum));
    }
    return sum;
}

static size_t deep;
static int result;

static void handler(int signal, siginfo_t *info, void *context) {
    (void)signal, (void)info;
    volatile char *memory = alloca(deep);
    memset((void *)memory, 1, deep);
    const char ready[] = "deep\n";
    char byte;
    if (write(1, ready, sizeof ready - 1) < 0 || read(0, &byte, 1) < 0) _exit(4);
    ((ucontext_t *)context)->uc_mcontext.gregs[REG_RDI] = (long)&result;
}

static void *run(void *unused) {
    (void)unused;
    interrupted_function(NULL);
    return NULL;
}

int main(int argc, char **argv) {
    if (argc < 2) return 2;
    deep = strtoul(argv[1], NULL, 10) << 10;
    struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO};
    sigaction(SIGSEGV, &action, NULL);
    pthread_attr_t attributes;
    pthread_t thread;
    pthread_attr_init(&attributes);
    if (pthread_attr_setstacksize(&attributes, 64 << 20) || pthread_create(&thread, &attributes, run, NULL))
        return 3;
    pthread_join(thread, NULL);
    printf("%s\n", result == 5 && kept_function(100) == 5050 ? "OK" : "wrong");
    return 0;
}
