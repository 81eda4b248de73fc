/* Calls code that it makes itself, and a plug-in that it loads, for each line that it is told: how often the former, and what came of it. Below zero a
   child loads another plug-in and calls that, and ends once it is told anything; it does so itself with a `b`. A plug-in is unloaded before the
   next one is loaded. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

/* endbr64; mov eax, 3; ret */
static const unsigned char three[16] = {0xf3, 0x0f, 0x1e, 0xfa, 0xb8, 3, 0, 0, 0, 0xc3};

__attribute__((noinline)) static long call(long (*pointer)(void))
{
    return pointer() + 1;
}

int main(int argc, char **argv)
{
    char line[64];
    (void)argc;
    unsigned char *code = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (code == MAP_FAILED)
        return 1;
    void *kept = NULL;
    setvbuf(stdin, NULL, _IONBF, 0);
    const char *ready = getenv("READY_FILE");
    if (ready)
        fclose(fopen(ready, "w"));
    while (fgets(line, sizeof line, stdin)) {
        long made = atol(line), sum = 0;
        int other = made < 0 || strchr(line, 'b') != NULL;
        if (made < 0 && fork()) {
            wait(NULL);
            continue;
        }
        if (kept)
            dlclose(kept);
        void *plug_in = dlopen(argv[1 + other], RTLD_NOW);
        long (*loaded)(void) = plug_in ? (long (*)(void))dlsym(plug_in, "loaded") : NULL;
        if (!loaded) {
            fprintf(stderr, "%s\n", dlerror());
            return 1;
        }
        sum += call(loaded);
        for (long n = 0; n < made; n++)
            memcpy(code + 16 * n, three, sizeof three);
        for (long n = 0; n < made; n++)
            for (int twice = 0; twice < 2; twice++)
                sum += call((long (*)(void))(code + 16 * n));
        printf("%ld %p\n", sum, (void *)loaded);
        fflush(stdout);
        if (made < 0)
            _exit(fgets(line, sizeof line, stdin) == NULL);
        kept = plug_in;
    }
    return 0;
}
