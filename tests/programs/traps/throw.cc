// Throws through functions that someone may measure: caught, rethrown, with destructors on the
// way, through virtual calls. On SIGTERM says how often something went wrong.
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>

#define NOINLINE __attribute__((noinline))

static volatile sig_atomic_t stop;
static int alive;

struct Counted {
  Counted() { alive++; }
  ~Counted() { alive--; }
};

struct Half {
  Half(bool fails) : first() {
    if (fails)
      throw std::runtime_error("half");
  }
  Counted first;
};

NOINLINE int throw_number(int n) {
  if (n < 0)
    throw n;
  return n + 1;
}
NOINLINE int throw_through(int n) {
  Counted guard;
  return throw_number(n) * 2;
}
NOINLINE int throw_and_catch(int n) {
  try {
    return throw_through(n);
  } catch (int caught) {
    return caught * 10;
  }
}
NOINLINE int throw_again(int n) {
  try {
    return throw_and_catch(n) < 0 ? throw_through(n) : 1;
  } catch (...) {
    throw;
  }
}
NOINLINE std::string throw_in_constructor() {
  try {
    Half half(true);
    return "no";
  } catch (const std::exception &error) {
    return error.what();
  }
}
struct Base {
  virtual int value(int n) = 0;
  virtual ~Base() = default;
};
struct Other {
  virtual int other() { return 1; }
  virtual ~Other() = default;
};
// Called as a Base, which lies behind an Other: through a thunk.
struct Derived : Other, Base {
  NOINLINE int value(int n) override { return throw_through(n); }
};
NOINLINE int throw_virtual(Base *base, int n) {
  try {
    return base->value(n);
  } catch (int caught) {
    return caught + 100;
  }
}

static unsigned long one_round() {
  unsigned long wrong = 0;
  wrong += throw_and_catch(4) != 10;
  wrong += throw_and_catch(-4) != -40;
  try {
    throw_again(-3);
    wrong++;
  } catch (int caught) {
    wrong += caught != -3;
  }
  wrong += throw_in_constructor() != "half";
  Derived derived;
  wrong += throw_virtual(&derived, 5) != 12 || throw_virtual(&derived, -5) != 95;
  return wrong + (alive != 0);
}

int main() {
  struct sigaction action = {};
  action.sa_handler = [](int) { stop = 1; };
  sigaction(SIGTERM, &action, nullptr);
  unsigned long wrong = one_round(), rounds = 0;
  if (const char *path = getenv("READY_FILE"))
    if (FILE *file = fopen(path, "w"))
      fclose(file);
  for (; !stop; rounds++)
    wrong += one_round();
  printf("throw: %lu rounds, %lu wrong\n", rounds, wrong);
  return wrong != 0 || rounds == 0;
}
