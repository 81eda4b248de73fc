#ifdef OTHER
/* Where the other one has its function is another one. */
long before(void)
{
    return 1;
}
#endif

long loaded(void)
{
    return 40;
}

#ifndef OTHER
long behind(void)
{
    return 1;
}
#endif
