// Every shape of exception table that compilers write: built with several compilers and options, its functions are converted.
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <vector>

struct Noisy {
    int *count;
    ~Noisy() { ++*count; }
};

__attribute__((noinline)) void raise(int kind) {
    switch (kind) {
    case 0: throw 7;
    case 1: throw std::runtime_error("one");
    case 2: throw std::string("two");
    case 3: throw 3.5;
    default: return;
    }
}

__attribute__((noinline)) int catches(int kind) {
    int count = 0;
    try {
        Noisy a{&count};
        raise(kind);
        Noisy b{&count};
        raise(kind - 1);
    } catch (const std::runtime_error &e) {
        return count + static_cast<int>(e.what()[0]);
    } catch (int n) {
        return count + n;
    } catch (...) {
        return -count;
    }
    return count;
}

__attribute__((noinline)) int rethrows(int kind) {
    int count = 0;
    Noisy outer{&count};
    try {
        try {
            raise(kind);
        } catch (const std::exception &) {
            Noisy inner{&count};
            throw;
        }
    } catch (std::runtime_error &) {
        return count + 100;
    }
    return count;
}

#if __cplusplus < 201703L
__attribute__((noinline)) int specified(int kind) throw(int, std::exception) {
    int count = 0;
    Noisy a{&count};
    raise(kind);
    return count;
}

__attribute__((noinline)) int throws_nothing(int kind) throw() {
    std::string text(static_cast<size_t>(kind + 3), 'x');
    raise(kind + static_cast<int>(text.size()));
    return static_cast<int>(text.size());
}
#endif

__attribute__((noinline)) int never(int kind) noexcept {
    std::vector<int> numbers(static_cast<size_t>(kind + 1), kind);
    raise(kind + 9);
    return numbers.back();
}

static void undo(int *count) { ++*count; }

__attribute__((noinline)) int cleans(int kind) {
    static int cleaned;
    int __attribute__((cleanup(undo))) count = 0;
    raise(kind);
    cleaned += count;
    return cleaned;
}

// Two stacks of different size, the frame by another register.
__attribute__((noinline)) int grows(int kind, size_t size) {
    char *room = static_cast<char *>(__builtin_alloca(size));
    room[0] = 1;
    try {
        raise(kind);
    } catch (...) {
        return room[0];
    }
    return room[0] + 1;
}

__attribute__((noinline)) int aligned(int kind) {
    alignas(64) volatile char room[64] = {1};
    try {
        raise(kind);
    } catch (int n) {
        return n + room[0];
    }
    return room[1];
}

// An error path that compilers put elsewhere.
__attribute__((noinline)) int split(int kind, std::string *out) {
    if (__builtin_expect(kind > 1000, 0)) {
        std::string text = "unlikely " + std::to_string(kind);
        out->append(text);
        raise(kind & 3);
        throw std::out_of_range(text);
    }
    try {
        raise(kind);
        out->append("as usual");
    } catch (std::string &text) {
        Noisy n{&kind};
        out->append(text);
        abort();
    }
    return kind;
}

__attribute__((noinline)) long many(long a, long b, long c, long d, long e, long f, long g, long h) {
    try {
        raise(static_cast<int>(a));
        raise(static_cast<int>(b + h));
    } catch (...) {
        return a * b * c * d * e * f * g * h;
    }
    return a + b + c + d + e + f + g + h;
}

int main(int argc, char **) {
    std::string out;
    int sum = 0;
    for (int kind = 0; kind < 5; kind++) {
        sum += catches(kind) + cleans(9) + grows(kind, 100) + never(kind);
        try {
            sum += rethrows(kind);
        } catch (...) {
            sum++;
        }
    }
    sum += aligned(0) + split(9, &out) + static_cast<int>(many(9, 9, 3, 4, 5, 6, 7, argc));
    printf("%d\n", sum);
    return 0;
}
