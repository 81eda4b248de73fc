// Throws through functions and, with the tables of a segment registered, through their copies in it: both must do the same.
// throwing SEGMENT BASE EH_FRAME OFFSET... (of the functions of `all`, in order); "terminate" in front runs only what terminates.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <fcntl.h>
#include <stdexcept>
#include <string>
#include <sys/mman.h>
#include <sys/stat.h>

extern "C" void __register_frame(void *);

static unsigned long segment_begin, segment_end;
static int from_copies;

__attribute__((noinline)) static void came_from(void *caller) {
    unsigned long at = reinterpret_cast<unsigned long>(caller);
    from_copies += segment_begin <= at && at < segment_end;
}

struct Noisy {
    int *count;
    __attribute__((noinline)) ~Noisy() {
        came_from(__builtin_return_address(0));
        ++*count;
    }
};

extern "C" __attribute__((noinline, noipa)) void raise_kind(int kind) {
    came_from(__builtin_return_address(0));
    switch (kind) {
    case 0: throw 7;
    case 1: throw std::runtime_error("one");
    case 2: throw std::string("two");
    case 3: throw 3.5;
    }
}

extern "C" int copied_catches(int kind) {
    int count = 0;
    try {
        Noisy a{&count};
        raise_kind(kind);
        Noisy b{&count};
        raise_kind(kind - 1);
    } catch (const std::runtime_error &e) {
        return count + e.what()[0];
    } catch (int n) {
        return count + n;
    } catch (...) {
        return -count;
    }
    return count;
}

extern "C" int copied_rethrows(int kind) {
    int count = 0;
    Noisy outer{&count};
    try {
        try {
            raise_kind(kind);
        } catch (const std::exception &) {
            Noisy inner{&count};
            throw;
        }
    } catch (std::runtime_error &) {
        return count + 100;
    }
    return count;
}

extern "C" int copied_specified(int kind) throw(int, std::string) {
    int count = 0;
    Noisy a{&count};
    raise_kind(kind);
    return count + 50;
}

static void undo(int *count) {
    came_from(__builtin_return_address(0));
    ++*count;
}

static int undone;

extern "C" int copied_cleans(int kind) {
    int __attribute__((cleanup(undo))) count = kind;
    Noisy a{&undone};
    raise_kind(kind);
    return count;
}

extern "C" int copied_grows(int kind) {
    char *room = static_cast<char *>(__builtin_alloca(static_cast<unsigned>(kind * 100 + 64)));
    std::memset(room, kind, 64);
    try {
        raise_kind(kind);
    } catch (...) {
        return room[63] + 1000;
    }
    return room[63];
}

extern "C" int copied_split(int kind) {
    int count = 0;
    if (__builtin_expect(kind > 2, 0)) {
        Noisy a{&count};
        std::string text = "unlikely " + std::to_string(kind);
        raise_kind(kind & 3);
        count += static_cast<int>(text.size());
    }
    try {
        raise_kind(kind);
    } catch (std::string &text) {
        Noisy n{&count};
        raise_kind(9);
        count += static_cast<int>(text.size());
    }
    return count;
}

extern "C" int copied_never(int kind) noexcept {
    int count = 0;
    Noisy a{&count};
    raise_kind(kind);
    return count;
}

using Function = int (*)(int);
static const Function all[] = {copied_catches, copied_rethrows, copied_specified, copied_cleans,
                               copied_grows,   copied_split,    copied_never};
constexpr int NEVER = 6;

static void tell(const char *what, int value) { printf("%s %d\n", what, value); }

static void drive(Function function) {
    for (int kind = 0; kind < 6; kind++) {
        try {
            tell("returned", function(kind));
        } catch (int n) {
            tell("int", n);
        } catch (std::runtime_error &e) {
            tell(e.what(), 0);
        } catch (std::string &text) {
            tell(text.c_str(), 0);
        } catch (double) {
            tell("double", undone);
        }
    }
}

int main(int argc, char **argv) {
    std::set_unexpected([] { throw std::string("instead"); });
    std::set_terminate([] {
        tell("terminates", 0);
        fprintf(stderr, "%d\n", from_copies);
        fflush(stdout);
        _Exit(0);
    });
    const bool terminates = argc > 1 && std::strcmp(argv[1], "terminate") == 0;
    char **argument = argv + (terminates ? 2 : 1);
    const bool copies = argument < argv + argc;
    if (copies) {
        int file = open(argument[0], O_RDONLY);
        struct stat status;
        fstat(file, &status);
        segment_begin = std::strtoul(argument[1], nullptr, 0);
        segment_end = segment_begin + static_cast<unsigned long>(status.st_size);
        void *base = reinterpret_cast<void *>(segment_begin);
        void *mapped = mmap(base, static_cast<size_t>(status.st_size), PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED_NOREPLACE, file, 0);
        if (mapped != base)
            return 2;
        __register_frame(reinterpret_cast<void *>(segment_begin + std::strtoul(argument[2], nullptr, 0)));
    }
    for (int n = 0; n <= NEVER; n++) {
        if ((n == NEVER) != terminates)
            continue;
        Function function = all[n];
        if (copies)
            function = reinterpret_cast<Function>(segment_begin + std::strtoul(argument[3 + n], nullptr, 0));
        drive(function);
    }
    fprintf(stderr, "%d\n", from_copies);
    return 0;
}
