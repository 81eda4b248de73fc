// Forks a child that goes on calling a function until it is told to end.
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile sig_atomic_t end;

__attribute__((noipa)) unsigned long one_step(unsigned long n) {
    return 3 * n + 1;
}

static void on_term(int unused) {
    (void)unused;
    end = 1;
}

int main(void) {
    signal(SIGTERM, on_term);
    puts("ready");
    fflush(stdout);
    getchar();
    unsigned long wrong = one_step(1) != 4;
    pid_t child = fork();
    if (child == 0) {
        // A test that fails ends the parent alone.
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (unsigned long n = 0; n < 1000; n++) wrong += one_step(n) != 3 * n + 1;
        printf("%d\n", getpid());
        fflush(stdout);
        for (unsigned long n = 0; !end; n++) wrong += one_step(n) != 3 * n + 1;
        _exit(wrong != 0);
    }
    getchar();
    int status;
    if (child < 0 || kill(child, SIGTERM) || waitpid(child, &status, 0) != child) return 3;
    return status != 0 || wrong != 0 || one_step(2) != 7;
}
