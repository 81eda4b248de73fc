// Virtual functions that throw through the function that calls them, and into it.
#include <cstdio>
#include <cstdlib>
#include <stdexcept>

static long called[3], caught;

struct Stage {
    virtual ~Stage() = default;
    virtual long take(long packet) = 0;
};
struct Passes : Stage {
    long take(long packet) override
    {
        called[0]++;
        return packet + 1;
    }
};
struct Drops : Stage {
    long take(long packet) override
    {
        called[1]++;
        if (packet % 3 == 0)
            throw std::runtime_error("dropped");
        return packet + 2;
    }
};
struct Ends : Stage {
    long take(long packet) override
    {
        called[2]++;
        if (packet % 5 == 0)
            throw packet;
        return packet + 3;
    }
};

struct Counted {
    long *at;
    ~Counted() { ++*at; }
};

// Catches one kind itself; the other passes it, and what is to be cleaned up is.
__attribute__((noinline)) static long run(Stage &first, Stage &second, Stage &third, long packet)
{
    Counted counted{&caught};
    long now = first.take(packet);
    try {
        now += second.take(packet);
    } catch (const std::runtime_error &) {
        now += 1000;
    }
    return now + third.take(packet);
}

// Which one is behind it is not to be known where it is called.
static Stage *volatile stages[] = {new Passes, new Drops, new Ends};

int main(int, char **argv)
{
    long sum = 0;
    for (long packet = 0; packet < atol(argv[1]); packet++) {
        try {
            sum += run(*stages[0], *stages[1], *stages[2], packet);
        } catch (long which) {
            sum += which;
        }
    }
    std::printf("%ld %ld %ld %ld %ld\n", sum, called[0], called[1], called[2], caught);
}
