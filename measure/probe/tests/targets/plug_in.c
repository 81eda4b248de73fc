// The plug-in of unloaded.c, in two variants that differ by a constant only.
#ifndef FACTOR
#define FACTOR 3
#endif
__attribute__((noinline)) unsigned plug_in_function(unsigned n) {
    unsigned product = n;
    for (unsigned i = 0; i < n; i++) product = product * FACTOR + i;
    return product;
}
