/* What comes in goes out: linked statically, so that nothing is preloaded. */
#include <unistd.h>

int main(void)
{
    static char bytes[65536];
    ssize_t got;
    while ((got = read(0, bytes, sizeof bytes)) > 0) {
        for (ssize_t done = 0; done < got;) {
            ssize_t put = write(1, bytes + done, got - done);
            if (put < 0)
                return 1;
            done += put;
        }
    }
    return got < 0;
}
