/* Its functions by which it is known; OTHER has another one in their place. */
long tiny(void);

#ifdef OTHER
#define FACTOR 17
#else
#define FACTOR 31
#endif

__attribute__((noinline)) long plug_step(long x)
{
#ifdef OTHER
    x ^= 0x5555;
#endif
    for (int i = 0; i < 8; i++)
        x = x * FACTOR + 7;
    return x;
}

__attribute__((noinline)) long plug_run(long n)
{
    long x = n;
    for (long i = 0; i < n; i++) {
        x = plug_step(x);
        tiny();
    }
    return x;
}
