__attribute__((noipa)) long tree_30(long x)
{
    x = x * 3 + 31;
    return x ^ x >> 7;
}
__attribute__((noipa)) long tree_29(long x)
{
    x = x * 3 + 30;
    return x ^ x >> 7;
}
__attribute__((noipa)) long tree_28(long x)
{
    x = x * 3 + 29;
    return x ^ x >> 7;
}
__attribute__((noipa)) long tree_27(long x)
{
    x = x * 3 + 28;
    return x ^ x >> 7;
}
__attribute__((noipa)) long tree_26(long x)
{
    x = x * 3 + 27;
    return x ^ x >> 7;
}
__attribute__((noipa)) long tree_25(long x)
{
    x = x * 3 + 26;
    return x ^ x >> 7;
}
__attribute__((noipa)) long tree_24(long x)
{
    x = x * 3 + 25;
    return x ^ x >> 7;
}
__attribute__((noipa)) long tree_23(long x)
{
    x = x * 3 + 24;
    return x ^ x >> 7;
}
__attribute__((noipa)) long tree_22(long x)
{
    x = x * 3 + 23;
    return x ^ x >> 7;
}
__attribute__((noipa)) long tree_21(long x)
{
    x = x * 3 + 22;
    return x ^ x >> 7;
}
__attribute__((noipa)) long tree_20(long x)
{
    x = x * 3 + 21;
    return x ^ x >> 7;
}
__attribute__((noipa)) long tree_19(long x)
{
    x = x * 3 + 20;
    return x ^ x >> 7;
}
__attribute__((noipa)) long tree_18(long x)
{
    x = x * 3 + 19;
    return x ^ x >> 7;
}
__attribute__((noipa)) long tree_17(long x)
{
    x = x * 3 + 18;
    return x ^ x >> 7;
}
__attribute__((noipa)) long tree_16(long x)
{
    x = x * 3 + 17;
    return x ^ x >> 7;
}
__attribute__((noipa)) long tree_15(long x)
{
    x = x * 3 + 16;
    return x ^ x >> 7;
}
__attribute__((noipa)) long tree_14(long x)
{
    x = x * 3 + 15;
    x ^= tree_29(x);
    x ^= tree_30(x);
    return x ^ x >> 7;
}
__attribute__((noipa)) long tree_13(long x)
{
    x = x * 3 + 14;
    x ^= tree_27(x);
    x ^= tree_28(x);
    return x ^ x >> 7;
}
__attribute__((noipa)) long tree_12(long x)
{
    x = x * 3 + 13;
    x ^= tree_25(x);
    x ^= tree_26(x);
    return x ^ x >> 7;
}
__attribute__((noipa)) long tree_11(long x)
{
    x = x * 3 + 12;
    x ^= tree_23(x);
    x ^= tree_24(x);
    return x ^ x >> 7;
}
__attribute__((noipa)) long tree_10(long x)
{
    x = x * 3 + 11;
    x ^= tree_21(x);
    x ^= tree_22(x);
    return x ^ x >> 7;
}
__attribute__((noipa)) long tree_09(long x)
{
    x = x * 3 + 10;
    x ^= tree_19(x);
    x ^= tree_20(x);
    return x ^ x >> 7;
}
__attribute__((noipa)) long tree_08(long x)
{
    x = x * 3 + 9;
    x ^= tree_17(x);
    x ^= tree_18(x);
    return x ^ x >> 7;
}
__attribute__((noipa)) long tree_07(long x)
{
    x = x * 3 + 8;
    x ^= tree_15(x);
    x ^= tree_16(x);
    return x ^ x >> 7;
}
__attribute__((noipa)) long tree_06(long x)
{
    x = x * 3 + 7;
    x ^= tree_13(x);
    x ^= tree_14(x);
    return x ^ x >> 7;
}
__attribute__((noipa)) long tree_05(long x)
{
    x = x * 3 + 6;
    x ^= tree_11(x);
    x ^= tree_12(x);
    return x ^ x >> 7;
}
__attribute__((noipa)) long tree_04(long x)
{
    x = x * 3 + 5;
    x ^= tree_09(x);
    x ^= tree_10(x);
    return x ^ x >> 7;
}
__attribute__((noipa)) long tree_03(long x)
{
    x = x * 3 + 4;
    x ^= tree_07(x);
    x ^= tree_08(x);
    return x ^ x >> 7;
}
__attribute__((noipa)) long tree_02(long x)
{
    x = x * 3 + 3;
    x ^= tree_05(x);
    x ^= tree_06(x);
    return x ^ x >> 7;
}
__attribute__((noipa)) long tree_01(long x)
{
    x = x * 3 + 2;
    x ^= tree_03(x);
    x ^= tree_04(x);
    return x ^ x >> 7;
}
__attribute__((noipa)) long tree_00(long x)
{
    x = x * 3 + 1;
    x ^= tree_01(x);
    x ^= tree_02(x);
    return x ^ x >> 7;
}
