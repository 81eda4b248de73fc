// A program with a plug-in that it closes, and replaces by another one, when it is told to.
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

__attribute__((noinline)) unsigned kept_function(unsigned n) {
    unsigned sum = 0;
    while (n) {
        sum += n--;
        __asm__ volatile("" : "+r"(sum));
    }
    return sum;
}

static void *open_plug_in(const char *path, void **function) {
    void *plug_in = dlopen(path, RTLD_NOW);
    *function = plug_in ? dlsym(plug_in, "plug_in_function") : NULL;
    return plug_in;
}

int main(int argc, char **argv) {
    if (argc < 2) return 2;
    char *first = argv[1], *second = strchr(argv[1], ':');
    if (!second) return 2;
    *second++ = 0;
    void *was, *is = NULL;
    void *plug_in = open_plug_in(first, &was);
    if (!plug_in || !was) return 3;
    puts("open");
    fflush(stdout);
    getchar();
    dlclose(plug_in);
    puts("closed");
    fflush(stdout);
    getchar();
    if (!open_plug_in(second, &is)) return 4;
    puts(is == was ? "same place" : "elsewhere");
    fflush(stdout);
    getchar();
    unsigned right = 0;
    for (int call = 0; call < 1000; call++) right += kept_function(100) == 5050;
    printf("%u\n", right);
    fflush(stdout);
    getchar();
    return 0;
}
