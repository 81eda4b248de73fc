/* Two of these have the same layout, and slots that are bound when they are called through first. */
long atol(const char *text);
long a64l(const char *text);

long plug_run(const char *text)
{
#ifdef SECOND
    return a64l(text) + 100;
#else
    return atol(text) + 100;
#endif
}
