// Calls the library N rounds for each line "N" on stdin, says what came of it, and forks for "fork". With arguments: so
// many rounds, and that is all. A round: 100 calls of each function, 10 more of `three` and `one` from another module.
// Nothing of its own or of the libraries changes but their global offset tables.
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

int three(int);
int one(int);
int two(int);
int looped(int);
int deep(int);
int compared(int);
int used(int);
#ifdef READS
void *read_from_the_table(void);
#endif
#ifdef COMPARES
typedef int (*function)(int);
static int is_it(function f) {
    return f == compared;
}
#endif

static unsigned long rounds(int n) {
    unsigned long sum = 0;
    for (int r = 0; r < n; r++) {
        for (int i = 0; i < 100; i++)
            sum += three(i) + one(i) + two(i) + looped(5) + deep(3) + compared(i);
        sum += used(10);
    }
    return sum;
}

static void forked(void) {
    pid_t pid = fork();
    if (pid == 0) {
        printf("child %lu\n", rounds(10));
        fflush(stdout);
        _exit(0);
    }
    int status;
    waitpid(pid, &status, 0);
}

int main(int argc, char **argv) {
#ifdef COMPARES
    function there = (function)dlsym(RTLD_DEFAULT, "compared");
    printf("%d\n", is_it(there));
#endif
#ifdef READS
    printf("%d\n", read_from_the_table() == dlsym(RTLD_DEFAULT, "compared"));
#endif
    if (argc > 1) {
        printf("%lu\n", rounds(atoi(argv[1])));
        return 0;
    }
    const char *ready = getenv("READY_FILE");
    if (ready) fclose(fopen(ready, "w"));
    char line[64];
    while (fgets(line, sizeof line, stdin)) {
        if (strncmp(line, "fork", 4) == 0) forked();
        else printf("%lu\n", rounds(atoi(line)));
        fflush(stdout);
    }
    return 0;
}
