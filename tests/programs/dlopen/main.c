/* Loads and unloads plug-ins, and calls them, as it is told: a line each, answered by a line. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SLOTS 8
#define WATCHDOG_S 60

typedef long (*run_fn)(long);

static struct {
    void *handle;
    run_fn run;
    const unsigned char *step;
    /* As the file has them. */
    unsigned char first[5];
} plugs[SLOTS];

/* No jump has room in it: it is measured where modules call it through their slots. */
__asm__(".text\n.globl tiny\n.type tiny, @function\n"
        "tiny: ret\n"
        ".size tiny, .-tiny\n"
        ".globl behind_tiny\n.type behind_tiny, @function\n"
        "behind_tiny: mov $7, %eax\n ret\n"
        ".size behind_tiny, .-behind_tiny\n");
long tiny(void);
long behind_tiny(void);

__attribute__((noinline)) long own(long x)
{
    for (int i = 0; i < 8; i++)
        x = x * 31 + 7;
    return x;
}

/* Called by a plug-in in C++, whose exceptions pass through it. */
__attribute__((noinline)) long through(long (*f)(long), long x)
{
    return f(x) + 1;
}

/* Each where the other one was, called after others may have seen it. Results that are wrong, and calls of each. */
static void in_turn(const char *first, const char *second, int rounds)
{
    int wrong = 0;
    for (int i = 0; i < 2 * rounds; i++) {
        void *handle = dlopen(i % 2 ? second : first, RTLD_LAZY | RTLD_LOCAL);
        long (*run)(const char *) = (long (*)(const char *))dlsym(handle, "plug_run");
        poll(NULL, 0, 5 + 40 * (i % 5));
        for (int n = 0; n < 10; n++)
            wrong += run("123") != (i % 2 ? a64l("123") : 123) + 100;
        dlclose(handle);
    }
    printf("%d wrong\n", wrong);
}

static int load(int n, const char *path)
{
    plugs[n].handle = dlopen(path, RTLD_LAZY | RTLD_LOCAL);
    if (!plugs[n].handle)
        return 0;
    plugs[n].run = (run_fn)dlsym(plugs[n].handle, "plug_run");
    plugs[n].step = dlsym(plugs[n].handle, "plug_step");
    if (plugs[n].step)
        memcpy(plugs[n].first, plugs[n].step, sizeof plugs[n].first);
    return 1;
}

/* Whether its function has got a jump, or has lost it. */
static int becomes(int n, int jump)
{
    struct timespec begin, now;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    do {
        if ((*(volatile const unsigned char *)plugs[n].step == 0xe9) == jump)
            return 1;
        sched_yield();
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while (now.tv_sec - begin.tv_sec < WATCHDOG_S);
    return 0;
}

/* Whether nothing of a jump is behind a breakpoint. */
static int is_given_back(int n)
{
    struct timespec begin, now;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    do {
        if (!memcmp(plugs[n].step + 1, plugs[n].first + 1, 4))
            return 1;
        sched_yield();
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while (now.tv_sec - begin.tv_sec < WATCHDOG_S);
    return 0;
}

struct work {
    int n;
    long count, sum;
};

static void *work(void *arg)
{
    struct work *w = arg;
    w->sum = plugs[w->n].run(w->count);
    return NULL;
}

int main(void)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    fclose(fopen(getenv("READY_FILE"), "w"));
    char line[4096], what[16], path[4000];
    while (fgets(line, sizeof line, stdin)) {
        int n = 0;
        long count = 0;
        path[0] = 0;
        sscanf(line, "%15s %d %3999s", what, &n, path);
        count = atol(path);
        if (!strcmp(what, "load")) {
            printf("%s\n", load(n, path) ? "loaded" : dlerror());
        } else if (!strcmp(what, "measured")) {
            printf("%s\n", becomes(n, 1) ? "measured" : "not measured");
        } else if (!strcmp(what, "original")) {
            printf("%s\n", becomes(n, 0) ? "original" : "not original");
        } else if (!strcmp(what, "given")) {
            printf("%s\n", is_given_back(n) ? "given back" : "not given back");
        } else if (!strcmp(what, "offset")) {
            Dl_info found;
            dladdr(plugs[n].step, &found);
            printf("%ld\n", (long)(plugs[n].step - (const unsigned char *)found.dli_fbase));
        } else if (!strcmp(what, "call")) {
            printf("%ld\n", plugs[n].run(count));
        } else if (!strcmp(what, "thread")) {
            struct work w = {n, count, 0};
            pthread_t thread;
            pthread_create(&thread, NULL, work, &w);
            pthread_join(thread, NULL);
            printf("%ld\n", w.sum);
        } else if (!strcmp(what, "fork")) {
            int status = -1;
            fflush(stdout);
            pid_t child = fork();
            if (!child)
                _exit(plugs[n].run(count) & 127);
            waitpid(child, &status, 0);
            printf("%d\n", WIFEXITED(status) ? WEXITSTATUS(status) : -1);
        } else if (!strcmp(what, "unload")) {
            printf("%s\n", dlclose(plugs[n].handle) ? dlerror() : "unloaded");
        } else if (!strcmp(what, "own")) {
            printf("%ld\n", own(n) + behind_tiny());
        } else if (!strcmp(what, "turns")) {
            char second[4000] = "";
            sscanf(line, "%*s %*d %*s %3999s", second);
            in_turn(path, second, n);
        } else if (!strcmp(what, "again")) {
            /* At once where it was, most often: nobody has seen it gone. */
            Dl_info before, after;
            dladdr(plugs[n].step, &before);
            void *at = before.dli_fbase;
            dlclose(plugs[n].handle);
            load(n, path);
            dladdr(plugs[n].step, &after);
            printf("%s\n", at == after.dli_fbase ? "same" : "elsewhere");
        }
    }
    return 0;
}
