long loaded(void)
{
    return 40;
}
