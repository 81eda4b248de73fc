long e5_0000(long x)
{
    x = x * 3 + 1;
    return x ^ x >> 3;
}
long e5_0001(long x)
{
    x = x * 3 + 8;
    return x ^ x >> 4;
}
long e5_0002(long x)
{
    x = x * 3 + 15;
    return x ^ x >> 5;
}
long e5_0003(long x)
{
    x = x * 3 + 22;
    return x ^ x >> 6;
}
long e5_0004(long x)
{
    x = x * 3 + 29;
    return x ^ x >> 7;
}
long e5_0005(long x)
{
    x = x * 3 + 36;
    return x ^ x >> 8;
}
long e5_0006(long x)
{
    x = x * 3 + 43;
    return x ^ x >> 9;
}
long e5_0007(long x)
{
    x = x * 3 + 50;
    return x ^ x >> 10;
}
long e5_0008(long x)
{
    x = x * 3 + 57;
    return x ^ x >> 11;
}
long e5_0009(long x)
{
    x = x * 3 + 64;
    return x ^ x >> 12;
}
long e5_0010(long x)
{
    x = x * 3 + 71;
    return x ^ x >> 13;
}
long e5_0011(long x)
{
    x = x * 3 + 78;
    return x ^ x >> 14;
}
long e5_0012(long x)
{
    x = x * 3 + 85;
    return x ^ x >> 15;
}
long e5_0013(long x)
{
    x = x * 3 + 92;
    return x ^ x >> 16;
}
long e5_0014(long x)
{
    x = x * 3 + 99;
    return x ^ x >> 17;
}
long e5_0015(long x)
{
    x = x * 3 + 106;
    return x ^ x >> 18;
}
long e5_0016(long x)
{
    x = x * 3 + 113;
    return x ^ x >> 19;
}
long e5_0017(long x)
{
    x = x * 3 + 120;
    return x ^ x >> 20;
}
long e5_0018(long x)
{
    x = x * 3 + 7;
    return x ^ x >> 21;
}
long e5_0019(long x)
{
    x = x * 3 + 14;
    return x ^ x >> 22;
}
long e5_0020(long x)
{
    x = x * 3 + 21;
    return x ^ x >> 23;
}
long e5_0021(long x)
{
    x = x * 3 + 28;
    return x ^ x >> 24;
}
long e5_0022(long x)
{
    x = x * 3 + 35;
    return x ^ x >> 25;
}
long e5_0023(long x)
{
    x = x * 3 + 42;
    return x ^ x >> 26;
}
long e5_0024(long x)
{
    x = x * 3 + 49;
    return x ^ x >> 27;
}
long e5_0025(long x)
{
    x = x * 3 + 56;
    return x ^ x >> 28;
}
long e5_0026(long x)
{
    x = x * 3 + 63;
    return x ^ x >> 29;
}
long e5_0027(long x)
{
    x = x * 3 + 70;
    return x ^ x >> 30;
}
long e5_0028(long x)
{
    x = x * 3 + 77;
    return x ^ x >> 31;
}
long e5_0029(long x)
{
    x = x * 3 + 84;
    return x ^ x >> 3;
}
long e5_0030(long x)
{
    x = x * 3 + 91;
    return x ^ x >> 4;
}
long e5_0031(long x)
{
    x = x * 3 + 98;
    return x ^ x >> 5;
}
long e5_0032(long x)
{
    x = x * 3 + 105;
    return x ^ x >> 6;
}
long e5_0033(long x)
{
    x = x * 3 + 112;
    return x ^ x >> 7;
}
long e5_0034(long x)
{
    x = x * 3 + 119;
    return x ^ x >> 8;
}
long e5_0035(long x)
{
    x = x * 3 + 6;
    return x ^ x >> 9;
}
long e5_0036(long x)
{
    x = x * 3 + 13;
    return x ^ x >> 10;
}
long e5_0037(long x)
{
    x = x * 3 + 20;
    return x ^ x >> 11;
}
long e5_0038(long x)
{
    x = x * 3 + 27;
    return x ^ x >> 12;
}
long e5_0039(long x)
{
    x = x * 3 + 34;
    return x ^ x >> 13;
}
long e5_0040(long x)
{
    x = x * 3 + 41;
    return x ^ x >> 14;
}
long e5_0041(long x)
{
    x = x * 3 + 48;
    return x ^ x >> 15;
}
long e5_0042(long x)
{
    x = x * 3 + 55;
    return x ^ x >> 16;
}
long e5_0043(long x)
{
    x = x * 3 + 62;
    return x ^ x >> 17;
}
long e5_0044(long x)
{
    x = x * 3 + 69;
    return x ^ x >> 18;
}
long e5_0045(long x)
{
    x = x * 3 + 76;
    return x ^ x >> 19;
}
long e5_0046(long x)
{
    x = x * 3 + 83;
    return x ^ x >> 20;
}
long e5_0047(long x)
{
    x = x * 3 + 90;
    return x ^ x >> 21;
}
long e5_0048(long x)
{
    x = x * 3 + 97;
    return x ^ x >> 22;
}
long e5_0049(long x)
{
    x = x * 3 + 104;
    return x ^ x >> 23;
}
long e5_0050(long x)
{
    x = x * 3 + 111;
    return x ^ x >> 24;
}
long e5_0051(long x)
{
    x = x * 3 + 118;
    return x ^ x >> 25;
}
long e5_0052(long x)
{
    x = x * 3 + 5;
    return x ^ x >> 26;
}
long e5_0053(long x)
{
    x = x * 3 + 12;
    return x ^ x >> 27;
}
long e5_0054(long x)
{
    x = x * 3 + 19;
    return x ^ x >> 28;
}
long e5_0055(long x)
{
    x = x * 3 + 26;
    return x ^ x >> 29;
}
long e5_0056(long x)
{
    x = x * 3 + 33;
    return x ^ x >> 30;
}
long e5_0057(long x)
{
    x = x * 3 + 40;
    return x ^ x >> 31;
}
long e5_0058(long x)
{
    x = x * 3 + 47;
    return x ^ x >> 3;
}
long e5_0059(long x)
{
    x = x * 3 + 54;
    return x ^ x >> 4;
}
long e5_0060(long x)
{
    x = x * 3 + 61;
    return x ^ x >> 5;
}
long e5_0061(long x)
{
    x = x * 3 + 68;
    return x ^ x >> 6;
}
long e5_0062(long x)
{
    x = x * 3 + 75;
    return x ^ x >> 7;
}
long e5_0063(long x)
{
    x = x * 3 + 82;
    return x ^ x >> 8;
}
long e5_0064(long x)
{
    x = x * 3 + 89;
    return x ^ x >> 9;
}
long e5_0065(long x)
{
    x = x * 3 + 96;
    return x ^ x >> 10;
}
long e5_0066(long x)
{
    x = x * 3 + 103;
    return x ^ x >> 11;
}
long e5_0067(long x)
{
    x = x * 3 + 110;
    return x ^ x >> 12;
}
long e5_0068(long x)
{
    x = x * 3 + 117;
    return x ^ x >> 13;
}
long e5_0069(long x)
{
    x = x * 3 + 4;
    return x ^ x >> 14;
}
long e5_0070(long x)
{
    x = x * 3 + 11;
    return x ^ x >> 15;
}
long e5_0071(long x)
{
    x = x * 3 + 18;
    return x ^ x >> 16;
}
long e5_0072(long x)
{
    x = x * 3 + 25;
    return x ^ x >> 17;
}
long e5_0073(long x)
{
    x = x * 3 + 32;
    return x ^ x >> 18;
}
long e5_0074(long x)
{
    x = x * 3 + 39;
    return x ^ x >> 19;
}
long e5_0075(long x)
{
    x = x * 3 + 46;
    return x ^ x >> 20;
}
long e5_0076(long x)
{
    x = x * 3 + 53;
    return x ^ x >> 21;
}
long e5_0077(long x)
{
    x = x * 3 + 60;
    return x ^ x >> 22;
}
long e5_0078(long x)
{
    x = x * 3 + 67;
    return x ^ x >> 23;
}
long e5_0079(long x)
{
    x = x * 3 + 74;
    return x ^ x >> 24;
}
long e5_0080(long x)
{
    x = x * 3 + 81;
    return x ^ x >> 25;
}
long e5_0081(long x)
{
    x = x * 3 + 88;
    return x ^ x >> 26;
}
long e5_0082(long x)
{
    x = x * 3 + 95;
    return x ^ x >> 27;
}
long e5_0083(long x)
{
    x = x * 3 + 102;
    return x ^ x >> 28;
}
long e5_0084(long x)
{
    x = x * 3 + 109;
    return x ^ x >> 29;
}
long e5_0085(long x)
{
    x = x * 3 + 116;
    return x ^ x >> 30;
}
long e5_0086(long x)
{
    x = x * 3 + 3;
    return x ^ x >> 31;
}
long e5_0087(long x)
{
    x = x * 3 + 10;
    return x ^ x >> 3;
}
long e5_0088(long x)
{
    x = x * 3 + 17;
    return x ^ x >> 4;
}
long e5_0089(long x)
{
    x = x * 3 + 24;
    return x ^ x >> 5;
}
long e5_0090(long x)
{
    x = x * 3 + 31;
    return x ^ x >> 6;
}
long e5_0091(long x)
{
    x = x * 3 + 38;
    return x ^ x >> 7;
}
long e5_0092(long x)
{
    x = x * 3 + 45;
    return x ^ x >> 8;
}
long e5_0093(long x)
{
    x = x * 3 + 52;
    return x ^ x >> 9;
}
long e5_0094(long x)
{
    x = x * 3 + 59;
    return x ^ x >> 10;
}
long e5_0095(long x)
{
    x = x * 3 + 66;
    return x ^ x >> 11;
}
long e5_0096(long x)
{
    x = x * 3 + 73;
    return x ^ x >> 12;
}
long e5_0097(long x)
{
    x = x * 3 + 80;
    return x ^ x >> 13;
}
long e5_0098(long x)
{
    x = x * 3 + 87;
    return x ^ x >> 14;
}
long e5_0099(long x)
{
    x = x * 3 + 94;
    return x ^ x >> 15;
}
long e5_0100(long x)
{
    x = x * 3 + 101;
    return x ^ x >> 16;
}
long e5_0101(long x)
{
    x = x * 3 + 108;
    return x ^ x >> 17;
}
long e5_0102(long x)
{
    x = x * 3 + 115;
    return x ^ x >> 18;
}
long e5_0103(long x)
{
    x = x * 3 + 2;
    return x ^ x >> 19;
}
long e5_0104(long x)
{
    x = x * 3 + 9;
    return x ^ x >> 20;
}
long e5_0105(long x)
{
    x = x * 3 + 16;
    return x ^ x >> 21;
}
long e5_0106(long x)
{
    x = x * 3 + 23;
    return x ^ x >> 22;
}
long e5_0107(long x)
{
    x = x * 3 + 30;
    return x ^ x >> 23;
}
long e5_0108(long x)
{
    x = x * 3 + 37;
    return x ^ x >> 24;
}
long e5_0109(long x)
{
    x = x * 3 + 44;
    return x ^ x >> 25;
}
long e5_0110(long x)
{
    x = x * 3 + 51;
    return x ^ x >> 26;
}
long e5_0111(long x)
{
    x = x * 3 + 58;
    return x ^ x >> 27;
}
long e5_0112(long x)
{
    x = x * 3 + 65;
    return x ^ x >> 28;
}
long e5_0113(long x)
{
    x = x * 3 + 72;
    return x ^ x >> 29;
}
long e5_0114(long x)
{
    x = x * 3 + 79;
    return x ^ x >> 30;
}
long e5_0115(long x)
{
    x = x * 3 + 86;
    return x ^ x >> 31;
}
long e5_0116(long x)
{
    x = x * 3 + 93;
    return x ^ x >> 3;
}
long e5_0117(long x)
{
    x = x * 3 + 100;
    return x ^ x >> 4;
}
long e5_0118(long x)
{
    x = x * 3 + 107;
    return x ^ x >> 5;
}
long e5_0119(long x)
{
    x = x * 3 + 114;
    return x ^ x >> 6;
}
long e5_0120(long x)
{
    x = x * 3 + 1;
    return x ^ x >> 7;
}
long e5_0121(long x)
{
    x = x * 3 + 8;
    return x ^ x >> 8;
}
long e5_0122(long x)
{
    x = x * 3 + 15;
    return x ^ x >> 9;
}
long e5_0123(long x)
{
    x = x * 3 + 22;
    return x ^ x >> 10;
}
long e5_0124(long x)
{
    x = x * 3 + 29;
    return x ^ x >> 11;
}
long e5_0125(long x)
{
    x = x * 3 + 36;
    return x ^ x >> 12;
}
long e5_0126(long x)
{
    x = x * 3 + 43;
    return x ^ x >> 13;
}
long e5_0127(long x)
{
    x = x * 3 + 50;
    return x ^ x >> 14;
}
long e5_0128(long x)
{
    x = x * 3 + 57;
    return x ^ x >> 15;
}
long e5_0129(long x)
{
    x = x * 3 + 64;
    return x ^ x >> 16;
}
long e5_0130(long x)
{
    x = x * 3 + 71;
    return x ^ x >> 17;
}
long e5_0131(long x)
{
    x = x * 3 + 78;
    return x ^ x >> 18;
}
long e5_0132(long x)
{
    x = x * 3 + 85;
    return x ^ x >> 19;
}
long e5_0133(long x)
{
    x = x * 3 + 92;
    return x ^ x >> 20;
}
long e5_0134(long x)
{
    x = x * 3 + 99;
    return x ^ x >> 21;
}
long e5_0135(long x)
{
    x = x * 3 + 106;
    return x ^ x >> 22;
}
long e5_0136(long x)
{
    x = x * 3 + 113;
    return x ^ x >> 23;
}
long e5_0137(long x)
{
    x = x * 3 + 120;
    return x ^ x >> 24;
}
long e5_0138(long x)
{
    x = x * 3 + 7;
    return x ^ x >> 25;
}
long e5_0139(long x)
{
    x = x * 3 + 14;
    return x ^ x >> 26;
}
long e5_0140(long x)
{
    x = x * 3 + 21;
    return x ^ x >> 27;
}
long e5_0141(long x)
{
    x = x * 3 + 28;
    return x ^ x >> 28;
}
long e5_0142(long x)
{
    x = x * 3 + 35;
    return x ^ x >> 29;
}
long e5_0143(long x)
{
    x = x * 3 + 42;
    return x ^ x >> 30;
}
long e5_0144(long x)
{
    x = x * 3 + 49;
    return x ^ x >> 31;
}
long e5_0145(long x)
{
    x = x * 3 + 56;
    return x ^ x >> 3;
}
long e5_0146(long x)
{
    x = x * 3 + 63;
    return x ^ x >> 4;
}
long e5_0147(long x)
{
    x = x * 3 + 70;
    return x ^ x >> 5;
}
long e5_0148(long x)
{
    x = x * 3 + 77;
    return x ^ x >> 6;
}
long e5_0149(long x)
{
    x = x * 3 + 84;
    return x ^ x >> 7;
}
long e5_0150(long x)
{
    x = x * 3 + 91;
    return x ^ x >> 8;
}
long e5_0151(long x)
{
    x = x * 3 + 98;
    return x ^ x >> 9;
}
long e5_0152(long x)
{
    x = x * 3 + 105;
    return x ^ x >> 10;
}
long e5_0153(long x)
{
    x = x * 3 + 112;
    return x ^ x >> 11;
}
long e5_0154(long x)
{
    x = x * 3 + 119;
    return x ^ x >> 12;
}
long e5_0155(long x)
{
    x = x * 3 + 6;
    return x ^ x >> 13;
}
long e5_0156(long x)
{
    x = x * 3 + 13;
    return x ^ x >> 14;
}
long e5_0157(long x)
{
    x = x * 3 + 20;
    return x ^ x >> 15;
}
long e5_0158(long x)
{
    x = x * 3 + 27;
    return x ^ x >> 16;
}
long e5_0159(long x)
{
    x = x * 3 + 34;
    return x ^ x >> 17;
}
long e5_0160(long x)
{
    x = x * 3 + 41;
    return x ^ x >> 18;
}
long e5_0161(long x)
{
    x = x * 3 + 48;
    return x ^ x >> 19;
}
long e5_0162(long x)
{
    x = x * 3 + 55;
    return x ^ x >> 20;
}
long e5_0163(long x)
{
    x = x * 3 + 62;
    return x ^ x >> 21;
}
long e5_0164(long x)
{
    x = x * 3 + 69;
    return x ^ x >> 22;
}
long e5_0165(long x)
{
    x = x * 3 + 76;
    return x ^ x >> 23;
}
long e5_0166(long x)
{
    x = x * 3 + 83;
    return x ^ x >> 24;
}
long e5_0167(long x)
{
    x = x * 3 + 90;
    return x ^ x >> 25;
}
long e5_0168(long x)
{
    x = x * 3 + 97;
    return x ^ x >> 26;
}
long e5_0169(long x)
{
    x = x * 3 + 104;
    return x ^ x >> 27;
}
long e5_0170(long x)
{
    x = x * 3 + 111;
    return x ^ x >> 28;
}
long e5_0171(long x)
{
    x = x * 3 + 118;
    return x ^ x >> 29;
}
long e5_0172(long x)
{
    x = x * 3 + 5;
    return x ^ x >> 30;
}
long e5_0173(long x)
{
    x = x * 3 + 12;
    return x ^ x >> 31;
}
long e5_0174(long x)
{
    x = x * 3 + 19;
    return x ^ x >> 3;
}
long e5_0175(long x)
{
    x = x * 3 + 26;
    return x ^ x >> 4;
}
long e5_0176(long x)
{
    x = x * 3 + 33;
    return x ^ x >> 5;
}
long e5_0177(long x)
{
    x = x * 3 + 40;
    return x ^ x >> 6;
}
long e5_0178(long x)
{
    x = x * 3 + 47;
    return x ^ x >> 7;
}
long e5_0179(long x)
{
    x = x * 3 + 54;
    return x ^ x >> 8;
}
long e5_0180(long x)
{
    x = x * 3 + 61;
    return x ^ x >> 9;
}
long e5_0181(long x)
{
    x = x * 3 + 68;
    return x ^ x >> 10;
}
long e5_0182(long x)
{
    x = x * 3 + 75;
    return x ^ x >> 11;
}
long e5_0183(long x)
{
    x = x * 3 + 82;
    return x ^ x >> 12;
}
long e5_0184(long x)
{
    x = x * 3 + 89;
    return x ^ x >> 13;
}
long e5_0185(long x)
{
    x = x * 3 + 96;
    return x ^ x >> 14;
}
long e5_0186(long x)
{
    x = x * 3 + 103;
    return x ^ x >> 15;
}
long e5_0187(long x)
{
    x = x * 3 + 110;
    return x ^ x >> 16;
}
long e5_0188(long x)
{
    x = x * 3 + 117;
    return x ^ x >> 17;
}
long e5_0189(long x)
{
    x = x * 3 + 4;
    return x ^ x >> 18;
}
long e5_0190(long x)
{
    x = x * 3 + 11;
    return x ^ x >> 19;
}
long e5_0191(long x)
{
    x = x * 3 + 18;
    return x ^ x >> 20;
}
long e5_0192(long x)
{
    x = x * 3 + 25;
    return x ^ x >> 21;
}
long e5_0193(long x)
{
    x = x * 3 + 32;
    return x ^ x >> 22;
}
long e5_0194(long x)
{
    x = x * 3 + 39;
    return x ^ x >> 23;
}
long e5_0195(long x)
{
    x = x * 3 + 46;
    return x ^ x >> 24;
}
long e5_0196(long x)
{
    x = x * 3 + 53;
    return x ^ x >> 25;
}
long e5_0197(long x)
{
    x = x * 3 + 60;
    return x ^ x >> 26;
}
long e5_0198(long x)
{
    x = x * 3 + 67;
    return x ^ x >> 27;
}
long e5_0199(long x)
{
    x = x * 3 + 74;
    return x ^ x >> 28;
}
long e5_0200(long x)
{
    x = x * 3 + 81;
    return x ^ x >> 29;
}
long e5_0201(long x)
{
    x = x * 3 + 88;
    return x ^ x >> 30;
}
long e5_0202(long x)
{
    x = x * 3 + 95;
    return x ^ x >> 31;
}
long e5_0203(long x)
{
    x = x * 3 + 102;
    return x ^ x >> 3;
}
long e5_0204(long x)
{
    x = x * 3 + 109;
    return x ^ x >> 4;
}
long e5_0205(long x)
{
    x = x * 3 + 116;
    return x ^ x >> 5;
}
long e5_0206(long x)
{
    x = x * 3 + 3;
    return x ^ x >> 6;
}
long e5_0207(long x)
{
    x = x * 3 + 10;
    return x ^ x >> 7;
}
long e5_0208(long x)
{
    x = x * 3 + 17;
    return x ^ x >> 8;
}
long e5_0209(long x)
{
    x = x * 3 + 24;
    return x ^ x >> 9;
}
long e5_0210(long x)
{
    x = x * 3 + 31;
    return x ^ x >> 10;
}
long e5_0211(long x)
{
    x = x * 3 + 38;
    return x ^ x >> 11;
}
long e5_0212(long x)
{
    x = x * 3 + 45;
    return x ^ x >> 12;
}
long e5_0213(long x)
{
    x = x * 3 + 52;
    return x ^ x >> 13;
}
long e5_0214(long x)
{
    x = x * 3 + 59;
    return x ^ x >> 14;
}
long e5_0215(long x)
{
    x = x * 3 + 66;
    return x ^ x >> 15;
}
long e5_0216(long x)
{
    x = x * 3 + 73;
    return x ^ x >> 16;
}
long e5_0217(long x)
{
    x = x * 3 + 80;
    return x ^ x >> 17;
}
long e5_0218(long x)
{
    x = x * 3 + 87;
    return x ^ x >> 18;
}
long e5_0219(long x)
{
    x = x * 3 + 94;
    return x ^ x >> 19;
}
long e5_0220(long x)
{
    x = x * 3 + 101;
    return x ^ x >> 20;
}
long e5_0221(long x)
{
    x = x * 3 + 108;
    return x ^ x >> 21;
}
long e5_0222(long x)
{
    x = x * 3 + 115;
    return x ^ x >> 22;
}
long e5_0223(long x)
{
    x = x * 3 + 2;
    return x ^ x >> 23;
}
long e5_0224(long x)
{
    x = x * 3 + 9;
    return x ^ x >> 24;
}
long e5_0225(long x)
{
    x = x * 3 + 16;
    return x ^ x >> 25;
}
long e5_0226(long x)
{
    x = x * 3 + 23;
    return x ^ x >> 26;
}
long e5_0227(long x)
{
    x = x * 3 + 30;
    return x ^ x >> 27;
}
long e5_0228(long x)
{
    x = x * 3 + 37;
    return x ^ x >> 28;
}
long e5_0229(long x)
{
    x = x * 3 + 44;
    return x ^ x >> 29;
}
long e5_0230(long x)
{
    x = x * 3 + 51;
    return x ^ x >> 30;
}
long e5_0231(long x)
{
    x = x * 3 + 58;
    return x ^ x >> 31;
}
long e5_0232(long x)
{
    x = x * 3 + 65;
    return x ^ x >> 3;
}
long e5_0233(long x)
{
    x = x * 3 + 72;
    return x ^ x >> 4;
}
long e5_0234(long x)
{
    x = x * 3 + 79;
    return x ^ x >> 5;
}
long e5_0235(long x)
{
    x = x * 3 + 86;
    return x ^ x >> 6;
}
long e5_0236(long x)
{
    x = x * 3 + 93;
    return x ^ x >> 7;
}
long e5_0237(long x)
{
    x = x * 3 + 100;
    return x ^ x >> 8;
}
long e5_0238(long x)
{
    x = x * 3 + 107;
    return x ^ x >> 9;
}
long e5_0239(long x)
{
    x = x * 3 + 114;
    return x ^ x >> 10;
}
long e5_0240(long x)
{
    x = x * 3 + 1;
    return x ^ x >> 11;
}
long e5_0241(long x)
{
    x = x * 3 + 8;
    return x ^ x >> 12;
}
long e5_0242(long x)
{
    x = x * 3 + 15;
    return x ^ x >> 13;
}
long e5_0243(long x)
{
    x = x * 3 + 22;
    return x ^ x >> 14;
}
long e5_0244(long x)
{
    x = x * 3 + 29;
    return x ^ x >> 15;
}
long e5_0245(long x)
{
    x = x * 3 + 36;
    return x ^ x >> 16;
}
long e5_0246(long x)
{
    x = x * 3 + 43;
    return x ^ x >> 17;
}
long e5_0247(long x)
{
    x = x * 3 + 50;
    return x ^ x >> 18;
}
long e5_0248(long x)
{
    x = x * 3 + 57;
    return x ^ x >> 19;
}
long e5_0249(long x)
{
    x = x * 3 + 64;
    return x ^ x >> 20;
}
long e5_0250(long x)
{
    x = x * 3 + 71;
    return x ^ x >> 21;
}
long e5_0251(long x)
{
    x = x * 3 + 78;
    return x ^ x >> 22;
}
long e5_0252(long x)
{
    x = x * 3 + 85;
    return x ^ x >> 23;
}
long e5_0253(long x)
{
    x = x * 3 + 92;
    return x ^ x >> 24;
}
long e5_0254(long x)
{
    x = x * 3 + 99;
    return x ^ x >> 25;
}
long e5_0255(long x)
{
    x = x * 3 + 106;
    return x ^ x >> 26;
}
long e5_0256(long x)
{
    x = x * 3 + 113;
    return x ^ x >> 27;
}
long e5_0257(long x)
{
    x = x * 3 + 120;
    return x ^ x >> 28;
}
long e5_0258(long x)
{
    x = x * 3 + 7;
    return x ^ x >> 29;
}
long e5_0259(long x)
{
    x = x * 3 + 14;
    return x ^ x >> 30;
}
long e5_0260(long x)
{
    x = x * 3 + 21;
    return x ^ x >> 31;
}
long e5_0261(long x)
{
    x = x * 3 + 28;
    return x ^ x >> 3;
}
long e5_0262(long x)
{
    x = x * 3 + 35;
    return x ^ x >> 4;
}
long e5_0263(long x)
{
    x = x * 3 + 42;
    return x ^ x >> 5;
}
long e5_0264(long x)
{
    x = x * 3 + 49;
    return x ^ x >> 6;
}
long e5_0265(long x)
{
    x = x * 3 + 56;
    return x ^ x >> 7;
}
long e5_0266(long x)
{
    x = x * 3 + 63;
    return x ^ x >> 8;
}
long e5_0267(long x)
{
    x = x * 3 + 70;
    return x ^ x >> 9;
}
long e5_0268(long x)
{
    x = x * 3 + 77;
    return x ^ x >> 10;
}
long e5_0269(long x)
{
    x = x * 3 + 84;
    return x ^ x >> 11;
}
long e5_0270(long x)
{
    x = x * 3 + 91;
    return x ^ x >> 12;
}
long e5_0271(long x)
{
    x = x * 3 + 98;
    return x ^ x >> 13;
}
long e5_0272(long x)
{
    x = x * 3 + 105;
    return x ^ x >> 14;
}
long e5_0273(long x)
{
    x = x * 3 + 112;
    return x ^ x >> 15;
}
long e5_0274(long x)
{
    x = x * 3 + 119;
    return x ^ x >> 16;
}
long e5_0275(long x)
{
    x = x * 3 + 6;
    return x ^ x >> 17;
}
long e5_0276(long x)
{
    x = x * 3 + 13;
    return x ^ x >> 18;
}
long e5_0277(long x)
{
    x = x * 3 + 20;
    return x ^ x >> 19;
}
long e5_0278(long x)
{
    x = x * 3 + 27;
    return x ^ x >> 20;
}
long e5_0279(long x)
{
    x = x * 3 + 34;
    return x ^ x >> 21;
}
long e5_0280(long x)
{
    x = x * 3 + 41;
    return x ^ x >> 22;
}
long e5_0281(long x)
{
    x = x * 3 + 48;
    return x ^ x >> 23;
}
long e5_0282(long x)
{
    x = x * 3 + 55;
    return x ^ x >> 24;
}
long e5_0283(long x)
{
    x = x * 3 + 62;
    return x ^ x >> 25;
}
long e5_0284(long x)
{
    x = x * 3 + 69;
    return x ^ x >> 26;
}
long e5_0285(long x)
{
    x = x * 3 + 76;
    return x ^ x >> 27;
}
long e5_0286(long x)
{
    x = x * 3 + 83;
    return x ^ x >> 28;
}
long e5_0287(long x)
{
    x = x * 3 + 90;
    return x ^ x >> 29;
}
long e5_0288(long x)
{
    x = x * 3 + 97;
    return x ^ x >> 30;
}
long e5_0289(long x)
{
    x = x * 3 + 104;
    return x ^ x >> 31;
}
long e5_0290(long x)
{
    x = x * 3 + 111;
    return x ^ x >> 3;
}
long e5_0291(long x)
{
    x = x * 3 + 118;
    return x ^ x >> 4;
}
long e5_0292(long x)
{
    x = x * 3 + 5;
    return x ^ x >> 5;
}
long e5_0293(long x)
{
    x = x * 3 + 12;
    return x ^ x >> 6;
}
long e5_0294(long x)
{
    x = x * 3 + 19;
    return x ^ x >> 7;
}
long e5_0295(long x)
{
    x = x * 3 + 26;
    return x ^ x >> 8;
}
long e5_0296(long x)
{
    x = x * 3 + 33;
    return x ^ x >> 9;
}
long e5_0297(long x)
{
    x = x * 3 + 40;
    return x ^ x >> 10;
}
long e5_0298(long x)
{
    x = x * 3 + 47;
    return x ^ x >> 11;
}
long e5_0299(long x)
{
    x = x * 3 + 54;
    return x ^ x >> 12;
}
long e5_0300(long x)
{
    x = x * 3 + 61;
    return x ^ x >> 13;
}
long e5_0301(long x)
{
    x = x * 3 + 68;
    return x ^ x >> 14;
}
long e5_0302(long x)
{
    x = x * 3 + 75;
    return x ^ x >> 15;
}
long e5_0303(long x)
{
    x = x * 3 + 82;
    return x ^ x >> 16;
}
long e5_0304(long x)
{
    x = x * 3 + 89;
    return x ^ x >> 17;
}
long e5_0305(long x)
{
    x = x * 3 + 96;
    return x ^ x >> 18;
}
long e5_0306(long x)
{
    x = x * 3 + 103;
    return x ^ x >> 19;
}
long e5_0307(long x)
{
    x = x * 3 + 110;
    return x ^ x >> 20;
}
long e5_0308(long x)
{
    x = x * 3 + 117;
    return x ^ x >> 21;
}
long e5_0309(long x)
{
    x = x * 3 + 4;
    return x ^ x >> 22;
}
long e5_0310(long x)
{
    x = x * 3 + 11;
    return x ^ x >> 23;
}
long e5_0311(long x)
{
    x = x * 3 + 18;
    return x ^ x >> 24;
}
long e5_0312(long x)
{
    x = x * 3 + 25;
    return x ^ x >> 25;
}
long e5_0313(long x)
{
    x = x * 3 + 32;
    return x ^ x >> 26;
}
long e5_0314(long x)
{
    x = x * 3 + 39;
    return x ^ x >> 27;
}
long e5_0315(long x)
{
    x = x * 3 + 46;
    return x ^ x >> 28;
}
long e5_0316(long x)
{
    x = x * 3 + 53;
    return x ^ x >> 29;
}
long e5_0317(long x)
{
    x = x * 3 + 60;
    return x ^ x >> 30;
}
long e5_0318(long x)
{
    x = x * 3 + 67;
    return x ^ x >> 31;
}
long e5_0319(long x)
{
    x = x * 3 + 74;
    return x ^ x >> 3;
}
long e5_0320(long x)
{
    x = x * 3 + 81;
    return x ^ x >> 4;
}
long e5_0321(long x)
{
    x = x * 3 + 88;
    return x ^ x >> 5;
}
long e5_0322(long x)
{
    x = x * 3 + 95;
    return x ^ x >> 6;
}
long e5_0323(long x)
{
    x = x * 3 + 102;
    return x ^ x >> 7;
}
long e5_0324(long x)
{
    x = x * 3 + 109;
    return x ^ x >> 8;
}
long e5_0325(long x)
{
    x = x * 3 + 116;
    return x ^ x >> 9;
}
long e5_0326(long x)
{
    x = x * 3 + 3;
    return x ^ x >> 10;
}
long e5_0327(long x)
{
    x = x * 3 + 10;
    return x ^ x >> 11;
}
long e5_0328(long x)
{
    x = x * 3 + 17;
    return x ^ x >> 12;
}
long e5_0329(long x)
{
    x = x * 3 + 24;
    return x ^ x >> 13;
}
long e5_0330(long x)
{
    x = x * 3 + 31;
    return x ^ x >> 14;
}
long e5_0331(long x)
{
    x = x * 3 + 38;
    return x ^ x >> 15;
}
long e5_0332(long x)
{
    x = x * 3 + 45;
    return x ^ x >> 16;
}
long e5_0333(long x)
{
    x = x * 3 + 52;
    return x ^ x >> 17;
}
long e5_0334(long x)
{
    x = x * 3 + 59;
    return x ^ x >> 18;
}
long e5_0335(long x)
{
    x = x * 3 + 66;
    return x ^ x >> 19;
}
long e5_0336(long x)
{
    x = x * 3 + 73;
    return x ^ x >> 20;
}
long e5_0337(long x)
{
    x = x * 3 + 80;
    return x ^ x >> 21;
}
long e5_0338(long x)
{
    x = x * 3 + 87;
    return x ^ x >> 22;
}
long e5_0339(long x)
{
    x = x * 3 + 94;
    return x ^ x >> 23;
}
long e5_0340(long x)
{
    x = x * 3 + 101;
    return x ^ x >> 24;
}
long e5_0341(long x)
{
    x = x * 3 + 108;
    return x ^ x >> 25;
}
long e5_0342(long x)
{
    x = x * 3 + 115;
    return x ^ x >> 26;
}
long e5_0343(long x)
{
    x = x * 3 + 2;
    return x ^ x >> 27;
}
long e5_0344(long x)
{
    x = x * 3 + 9;
    return x ^ x >> 28;
}
long e5_0345(long x)
{
    x = x * 3 + 16;
    return x ^ x >> 29;
}
long e5_0346(long x)
{
    x = x * 3 + 23;
    return x ^ x >> 30;
}
long e5_0347(long x)
{
    x = x * 3 + 30;
    return x ^ x >> 31;
}
long e5_0348(long x)
{
    x = x * 3 + 37;
    return x ^ x >> 3;
}
long e5_0349(long x)
{
    x = x * 3 + 44;
    return x ^ x >> 4;
}
long e5_0350(long x)
{
    x = x * 3 + 51;
    return x ^ x >> 5;
}
long e5_0351(long x)
{
    x = x * 3 + 58;
    return x ^ x >> 6;
}
long e5_0352(long x)
{
    x = x * 3 + 65;
    return x ^ x >> 7;
}
long e5_0353(long x)
{
    x = x * 3 + 72;
    return x ^ x >> 8;
}
long e5_0354(long x)
{
    x = x * 3 + 79;
    return x ^ x >> 9;
}
long e5_0355(long x)
{
    x = x * 3 + 86;
    return x ^ x >> 10;
}
long e5_0356(long x)
{
    x = x * 3 + 93;
    return x ^ x >> 11;
}
long e5_0357(long x)
{
    x = x * 3 + 100;
    return x ^ x >> 12;
}
long e5_0358(long x)
{
    x = x * 3 + 107;
    return x ^ x >> 13;
}
long e5_0359(long x)
{
    x = x * 3 + 114;
    return x ^ x >> 14;
}
long e5_0360(long x)
{
    x = x * 3 + 1;
    return x ^ x >> 15;
}
long e5_0361(long x)
{
    x = x * 3 + 8;
    return x ^ x >> 16;
}
long e5_0362(long x)
{
    x = x * 3 + 15;
    return x ^ x >> 17;
}
long e5_0363(long x)
{
    x = x * 3 + 22;
    return x ^ x >> 18;
}
long e5_0364(long x)
{
    x = x * 3 + 29;
    return x ^ x >> 19;
}
long e5_0365(long x)
{
    x = x * 3 + 36;
    return x ^ x >> 20;
}
long e5_0366(long x)
{
    x = x * 3 + 43;
    return x ^ x >> 21;
}
long e5_0367(long x)
{
    x = x * 3 + 50;
    return x ^ x >> 22;
}
long e5_0368(long x)
{
    x = x * 3 + 57;
    return x ^ x >> 23;
}
long e5_0369(long x)
{
    x = x * 3 + 64;
    return x ^ x >> 24;
}
long e5_0370(long x)
{
    x = x * 3 + 71;
    return x ^ x >> 25;
}
long e5_0371(long x)
{
    x = x * 3 + 78;
    return x ^ x >> 26;
}
long e5_0372(long x)
{
    x = x * 3 + 85;
    return x ^ x >> 27;
}
long e5_0373(long x)
{
    x = x * 3 + 92;
    return x ^ x >> 28;
}
long e5_0374(long x)
{
    x = x * 3 + 99;
    return x ^ x >> 29;
}
long e5_0375(long x)
{
    x = x * 3 + 106;
    return x ^ x >> 30;
}
long e5_0376(long x)
{
    x = x * 3 + 113;
    return x ^ x >> 31;
}
long e5_0377(long x)
{
    x = x * 3 + 120;
    return x ^ x >> 3;
}
long e5_0378(long x)
{
    x = x * 3 + 7;
    return x ^ x >> 4;
}
long e5_0379(long x)
{
    x = x * 3 + 14;
    return x ^ x >> 5;
}
long e5_0380(long x)
{
    x = x * 3 + 21;
    return x ^ x >> 6;
}
long e5_0381(long x)
{
    x = x * 3 + 28;
    return x ^ x >> 7;
}
long e5_0382(long x)
{
    x = x * 3 + 35;
    return x ^ x >> 8;
}
long e5_0383(long x)
{
    x = x * 3 + 42;
    return x ^ x >> 9;
}
long e5_0384(long x)
{
    x = x * 3 + 49;
    return x ^ x >> 10;
}
long e5_0385(long x)
{
    x = x * 3 + 56;
    return x ^ x >> 11;
}
long e5_0386(long x)
{
    x = x * 3 + 63;
    return x ^ x >> 12;
}
long e5_0387(long x)
{
    x = x * 3 + 70;
    return x ^ x >> 13;
}
long e5_0388(long x)
{
    x = x * 3 + 77;
    return x ^ x >> 14;
}
long e5_0389(long x)
{
    x = x * 3 + 84;
    return x ^ x >> 15;
}
long e5_0390(long x)
{
    x = x * 3 + 91;
    return x ^ x >> 16;
}
long e5_0391(long x)
{
    x = x * 3 + 98;
    return x ^ x >> 17;
}
long e5_0392(long x)
{
    x = x * 3 + 105;
    return x ^ x >> 18;
}
long e5_0393(long x)
{
    x = x * 3 + 112;
    return x ^ x >> 19;
}
long e5_0394(long x)
{
    x = x * 3 + 119;
    return x ^ x >> 20;
}
long e5_0395(long x)
{
    x = x * 3 + 6;
    return x ^ x >> 21;
}
long e5_0396(long x)
{
    x = x * 3 + 13;
    return x ^ x >> 22;
}
long e5_0397(long x)
{
    x = x * 3 + 20;
    return x ^ x >> 23;
}
long e5_0398(long x)
{
    x = x * 3 + 27;
    return x ^ x >> 24;
}
long e5_0399(long x)
{
    x = x * 3 + 34;
    return x ^ x >> 25;
}
long e5_0400(long x)
{
    x = x * 3 + 41;
    return x ^ x >> 26;
}
long e5_0401(long x)
{
    x = x * 3 + 48;
    return x ^ x >> 27;
}
long e5_0402(long x)
{
    x = x * 3 + 55;
    return x ^ x >> 28;
}
long e5_0403(long x)
{
    x = x * 3 + 62;
    return x ^ x >> 29;
}
long e5_0404(long x)
{
    x = x * 3 + 69;
    return x ^ x >> 30;
}
long e5_0405(long x)
{
    x = x * 3 + 76;
    return x ^ x >> 31;
}
long e5_0406(long x)
{
    x = x * 3 + 83;
    return x ^ x >> 3;
}
long e5_0407(long x)
{
    x = x * 3 + 90;
    return x ^ x >> 4;
}
long e5_0408(long x)
{
    x = x * 3 + 97;
    return x ^ x >> 5;
}
long e5_0409(long x)
{
    x = x * 3 + 104;
    return x ^ x >> 6;
}
long e5_0410(long x)
{
    x = x * 3 + 111;
    return x ^ x >> 7;
}
long e5_0411(long x)
{
    x = x * 3 + 118;
    return x ^ x >> 8;
}
long e5_0412(long x)
{
    x = x * 3 + 5;
    return x ^ x >> 9;
}
long e5_0413(long x)
{
    x = x * 3 + 12;
    return x ^ x >> 10;
}
long e5_0414(long x)
{
    x = x * 3 + 19;
    return x ^ x >> 11;
}
long e5_0415(long x)
{
    x = x * 3 + 26;
    return x ^ x >> 12;
}
long e5_0416(long x)
{
    x = x * 3 + 33;
    return x ^ x >> 13;
}
long e5_0417(long x)
{
    x = x * 3 + 40;
    return x ^ x >> 14;
}
long e5_0418(long x)
{
    x = x * 3 + 47;
    return x ^ x >> 15;
}
long e5_0419(long x)
{
    x = x * 3 + 54;
    return x ^ x >> 16;
}
long e5_0420(long x)
{
    x = x * 3 + 61;
    return x ^ x >> 17;
}
long e5_0421(long x)
{
    x = x * 3 + 68;
    return x ^ x >> 18;
}
long e5_0422(long x)
{
    x = x * 3 + 75;
    return x ^ x >> 19;
}
long e5_0423(long x)
{
    x = x * 3 + 82;
    return x ^ x >> 20;
}
long e5_0424(long x)
{
    x = x * 3 + 89;
    return x ^ x >> 21;
}
long e5_0425(long x)
{
    x = x * 3 + 96;
    return x ^ x >> 22;
}
long e5_0426(long x)
{
    x = x * 3 + 103;
    return x ^ x >> 23;
}
long e5_0427(long x)
{
    x = x * 3 + 110;
    return x ^ x >> 24;
}
long e5_0428(long x)
{
    x = x * 3 + 117;
    return x ^ x >> 25;
}
long e5_0429(long x)
{
    x = x * 3 + 4;
    return x ^ x >> 26;
}
long e5_0430(long x)
{
    x = x * 3 + 11;
    return x ^ x >> 27;
}
long e5_0431(long x)
{
    x = x * 3 + 18;
    return x ^ x >> 28;
}
long e5_0432(long x)
{
    x = x * 3 + 25;
    return x ^ x >> 29;
}
long e5_0433(long x)
{
    x = x * 3 + 32;
    return x ^ x >> 30;
}
long e5_0434(long x)
{
    x = x * 3 + 39;
    return x ^ x >> 31;
}
long e5_0435(long x)
{
    x = x * 3 + 46;
    return x ^ x >> 3;
}
long e5_0436(long x)
{
    x = x * 3 + 53;
    return x ^ x >> 4;
}
long e5_0437(long x)
{
    x = x * 3 + 60;
    return x ^ x >> 5;
}
long e5_0438(long x)
{
    x = x * 3 + 67;
    return x ^ x >> 6;
}
long e5_0439(long x)
{
    x = x * 3 + 74;
    return x ^ x >> 7;
}
long e5_0440(long x)
{
    x = x * 3 + 81;
    return x ^ x >> 8;
}
long e5_0441(long x)
{
    x = x * 3 + 88;
    return x ^ x >> 9;
}
long e5_0442(long x)
{
    x = x * 3 + 95;
    return x ^ x >> 10;
}
long e5_0443(long x)
{
    x = x * 3 + 102;
    return x ^ x >> 11;
}
long e5_0444(long x)
{
    x = x * 3 + 109;
    return x ^ x >> 12;
}
long e5_0445(long x)
{
    x = x * 3 + 116;
    return x ^ x >> 13;
}
long e5_0446(long x)
{
    x = x * 3 + 3;
    return x ^ x >> 14;
}
long e5_0447(long x)
{
    x = x * 3 + 10;
    return x ^ x >> 15;
}
long e5_0448(long x)
{
    x = x * 3 + 17;
    return x ^ x >> 16;
}
long e5_0449(long x)
{
    x = x * 3 + 24;
    return x ^ x >> 17;
}
long e5_0450(long x)
{
    x = x * 3 + 31;
    return x ^ x >> 18;
}
long e5_0451(long x)
{
    x = x * 3 + 38;
    return x ^ x >> 19;
}
long e5_0452(long x)
{
    x = x * 3 + 45;
    return x ^ x >> 20;
}
long e5_0453(long x)
{
    x = x * 3 + 52;
    return x ^ x >> 21;
}
long e5_0454(long x)
{
    x = x * 3 + 59;
    return x ^ x >> 22;
}
long e5_0455(long x)
{
    x = x * 3 + 66;
    return x ^ x >> 23;
}
long e5_0456(long x)
{
    x = x * 3 + 73;
    return x ^ x >> 24;
}
long e5_0457(long x)
{
    x = x * 3 + 80;
    return x ^ x >> 25;
}
long e5_0458(long x)
{
    x = x * 3 + 87;
    return x ^ x >> 26;
}
long e5_0459(long x)
{
    x = x * 3 + 94;
    return x ^ x >> 27;
}
long e5_0460(long x)
{
    x = x * 3 + 101;
    return x ^ x >> 28;
}
long e5_0461(long x)
{
    x = x * 3 + 108;
    return x ^ x >> 29;
}
long e5_0462(long x)
{
    x = x * 3 + 115;
    return x ^ x >> 30;
}
long e5_0463(long x)
{
    x = x * 3 + 2;
    return x ^ x >> 31;
}
long e5_0464(long x)
{
    x = x * 3 + 9;
    return x ^ x >> 3;
}
long e5_0465(long x)
{
    x = x * 3 + 16;
    return x ^ x >> 4;
}
long e5_0466(long x)
{
    x = x * 3 + 23;
    return x ^ x >> 5;
}
long e5_0467(long x)
{
    x = x * 3 + 30;
    return x ^ x >> 6;
}
long e5_0468(long x)
{
    x = x * 3 + 37;
    return x ^ x >> 7;
}
long e5_0469(long x)
{
    x = x * 3 + 44;
    return x ^ x >> 8;
}
long e5_0470(long x)
{
    x = x * 3 + 51;
    return x ^ x >> 9;
}
long e5_0471(long x)
{
    x = x * 3 + 58;
    return x ^ x >> 10;
}
long e5_0472(long x)
{
    x = x * 3 + 65;
    return x ^ x >> 11;
}
long e5_0473(long x)
{
    x = x * 3 + 72;
    return x ^ x >> 12;
}
long e5_0474(long x)
{
    x = x * 3 + 79;
    return x ^ x >> 13;
}
long e5_0475(long x)
{
    x = x * 3 + 86;
    return x ^ x >> 14;
}
long e5_0476(long x)
{
    x = x * 3 + 93;
    return x ^ x >> 15;
}
long e5_0477(long x)
{
    x = x * 3 + 100;
    return x ^ x >> 16;
}
long e5_0478(long x)
{
    x = x * 3 + 107;
    return x ^ x >> 17;
}
long e5_0479(long x)
{
    x = x * 3 + 114;
    return x ^ x >> 18;
}
long e5_0480(long x)
{
    x = x * 3 + 1;
    return x ^ x >> 19;
}
long e5_0481(long x)
{
    x = x * 3 + 8;
    return x ^ x >> 20;
}
long e5_0482(long x)
{
    x = x * 3 + 15;
    return x ^ x >> 21;
}
long e5_0483(long x)
{
    x = x * 3 + 22;
    return x ^ x >> 22;
}
long e5_0484(long x)
{
    x = x * 3 + 29;
    return x ^ x >> 23;
}
long e5_0485(long x)
{
    x = x * 3 + 36;
    return x ^ x >> 24;
}
long e5_0486(long x)
{
    x = x * 3 + 43;
    return x ^ x >> 25;
}
long e5_0487(long x)
{
    x = x * 3 + 50;
    return x ^ x >> 26;
}
long e5_0488(long x)
{
    x = x * 3 + 57;
    return x ^ x >> 27;
}
long e5_0489(long x)
{
    x = x * 3 + 64;
    return x ^ x >> 28;
}
long e5_0490(long x)
{
    x = x * 3 + 71;
    return x ^ x >> 29;
}
long e5_0491(long x)
{
    x = x * 3 + 78;
    return x ^ x >> 30;
}
long e5_0492(long x)
{
    x = x * 3 + 85;
    return x ^ x >> 31;
}
long e5_0493(long x)
{
    x = x * 3 + 92;
    return x ^ x >> 3;
}
long e5_0494(long x)
{
    x = x * 3 + 99;
    return x ^ x >> 4;
}
long e5_0495(long x)
{
    x = x * 3 + 106;
    return x ^ x >> 5;
}
long e5_0496(long x)
{
    x = x * 3 + 113;
    return x ^ x >> 6;
}
long e5_0497(long x)
{
    x = x * 3 + 120;
    return x ^ x >> 7;
}
long e5_0498(long x)
{
    x = x * 3 + 7;
    return x ^ x >> 8;
}
long e5_0499(long x)
{
    x = x * 3 + 14;
    return x ^ x >> 9;
}
long e5_0500(long x)
{
    x = x * 3 + 21;
    return x ^ x >> 10;
}
long e5_0501(long x)
{
    x = x * 3 + 28;
    return x ^ x >> 11;
}
long e5_0502(long x)
{
    x = x * 3 + 35;
    return x ^ x >> 12;
}
long e5_0503(long x)
{
    x = x * 3 + 42;
    return x ^ x >> 13;
}
long e5_0504(long x)
{
    x = x * 3 + 49;
    return x ^ x >> 14;
}
long e5_0505(long x)
{
    x = x * 3 + 56;
    return x ^ x >> 15;
}
long e5_0506(long x)
{
    x = x * 3 + 63;
    return x ^ x >> 16;
}
long e5_0507(long x)
{
    x = x * 3 + 70;
    return x ^ x >> 17;
}
long e5_0508(long x)
{
    x = x * 3 + 77;
    return x ^ x >> 18;
}
long e5_0509(long x)
{
    x = x * 3 + 84;
    return x ^ x >> 19;
}
long e5_0510(long x)
{
    x = x * 3 + 91;
    return x ^ x >> 20;
}
long e5_0511(long x)
{
    x = x * 3 + 98;
    return x ^ x >> 21;
}
long e5_0512(long x)
{
    x = x * 3 + 105;
    return x ^ x >> 22;
}
long e5_0513(long x)
{
    x = x * 3 + 112;
    return x ^ x >> 23;
}
long e5_0514(long x)
{
    x = x * 3 + 119;
    return x ^ x >> 24;
}
long e5_0515(long x)
{
    x = x * 3 + 6;
    return x ^ x >> 25;
}
long e5_0516(long x)
{
    x = x * 3 + 13;
    return x ^ x >> 26;
}
long e5_0517(long x)
{
    x = x * 3 + 20;
    return x ^ x >> 27;
}
long e5_0518(long x)
{
    x = x * 3 + 27;
    return x ^ x >> 28;
}
long e5_0519(long x)
{
    x = x * 3 + 34;
    return x ^ x >> 29;
}
long e5_0520(long x)
{
    x = x * 3 + 41;
    return x ^ x >> 30;
}
long e5_0521(long x)
{
    x = x * 3 + 48;
    return x ^ x >> 31;
}
long e5_0522(long x)
{
    x = x * 3 + 55;
    return x ^ x >> 3;
}
long e5_0523(long x)
{
    x = x * 3 + 62;
    return x ^ x >> 4;
}
long e5_0524(long x)
{
    x = x * 3 + 69;
    return x ^ x >> 5;
}
long e5_0525(long x)
{
    x = x * 3 + 76;
    return x ^ x >> 6;
}
long e5_0526(long x)
{
    x = x * 3 + 83;
    return x ^ x >> 7;
}
long e5_0527(long x)
{
    x = x * 3 + 90;
    return x ^ x >> 8;
}
long e5_0528(long x)
{
    x = x * 3 + 97;
    return x ^ x >> 9;
}
long e5_0529(long x)
{
    x = x * 3 + 104;
    return x ^ x >> 10;
}
long e5_0530(long x)
{
    x = x * 3 + 111;
    return x ^ x >> 11;
}
long e5_0531(long x)
{
    x = x * 3 + 118;
    return x ^ x >> 12;
}
long e5_0532(long x)
{
    x = x * 3 + 5;
    return x ^ x >> 13;
}
long e5_0533(long x)
{
    x = x * 3 + 12;
    return x ^ x >> 14;
}
long e5_0534(long x)
{
    x = x * 3 + 19;
    return x ^ x >> 15;
}
long e5_0535(long x)
{
    x = x * 3 + 26;
    return x ^ x >> 16;
}
long e5_0536(long x)
{
    x = x * 3 + 33;
    return x ^ x >> 17;
}
long e5_0537(long x)
{
    x = x * 3 + 40;
    return x ^ x >> 18;
}
long e5_0538(long x)
{
    x = x * 3 + 47;
    return x ^ x >> 19;
}
long e5_0539(long x)
{
    x = x * 3 + 54;
    return x ^ x >> 20;
}
long e5_0540(long x)
{
    x = x * 3 + 61;
    return x ^ x >> 21;
}
long e5_0541(long x)
{
    x = x * 3 + 68;
    return x ^ x >> 22;
}
long e5_0542(long x)
{
    x = x * 3 + 75;
    return x ^ x >> 23;
}
long e5_0543(long x)
{
    x = x * 3 + 82;
    return x ^ x >> 24;
}
long e5_0544(long x)
{
    x = x * 3 + 89;
    return x ^ x >> 25;
}
long e5_0545(long x)
{
    x = x * 3 + 96;
    return x ^ x >> 26;
}
long e5_0546(long x)
{
    x = x * 3 + 103;
    return x ^ x >> 27;
}
long e5_0547(long x)
{
    x = x * 3 + 110;
    return x ^ x >> 28;
}
long e5_0548(long x)
{
    x = x * 3 + 117;
    return x ^ x >> 29;
}
long e5_0549(long x)
{
    x = x * 3 + 4;
    return x ^ x >> 30;
}
long e5_0550(long x)
{
    x = x * 3 + 11;
    return x ^ x >> 31;
}
long e5_0551(long x)
{
    x = x * 3 + 18;
    return x ^ x >> 3;
}
long e5_0552(long x)
{
    x = x * 3 + 25;
    return x ^ x >> 4;
}
long e5_0553(long x)
{
    x = x * 3 + 32;
    return x ^ x >> 5;
}
long e5_0554(long x)
{
    x = x * 3 + 39;
    return x ^ x >> 6;
}
long e5_0555(long x)
{
    x = x * 3 + 46;
    return x ^ x >> 7;
}
long e5_0556(long x)
{
    x = x * 3 + 53;
    return x ^ x >> 8;
}
long e5_0557(long x)
{
    x = x * 3 + 60;
    return x ^ x >> 9;
}
long e5_0558(long x)
{
    x = x * 3 + 67;
    return x ^ x >> 10;
}
long e5_0559(long x)
{
    x = x * 3 + 74;
    return x ^ x >> 11;
}
long e5_0560(long x)
{
    x = x * 3 + 81;
    return x ^ x >> 12;
}
long e5_0561(long x)
{
    x = x * 3 + 88;
    return x ^ x >> 13;
}
long e5_0562(long x)
{
    x = x * 3 + 95;
    return x ^ x >> 14;
}
long e5_0563(long x)
{
    x = x * 3 + 102;
    return x ^ x >> 15;
}
long e5_0564(long x)
{
    x = x * 3 + 109;
    return x ^ x >> 16;
}
long e5_0565(long x)
{
    x = x * 3 + 116;
    return x ^ x >> 17;
}
long e5_0566(long x)
{
    x = x * 3 + 3;
    return x ^ x >> 18;
}
long e5_0567(long x)
{
    x = x * 3 + 10;
    return x ^ x >> 19;
}
long e5_0568(long x)
{
    x = x * 3 + 17;
    return x ^ x >> 20;
}
long e5_0569(long x)
{
    x = x * 3 + 24;
    return x ^ x >> 21;
}
long e5_0570(long x)
{
    x = x * 3 + 31;
    return x ^ x >> 22;
}
long e5_0571(long x)
{
    x = x * 3 + 38;
    return x ^ x >> 23;
}
long e5_0572(long x)
{
    x = x * 3 + 45;
    return x ^ x >> 24;
}
long e5_0573(long x)
{
    x = x * 3 + 52;
    return x ^ x >> 25;
}
long e5_0574(long x)
{
    x = x * 3 + 59;
    return x ^ x >> 26;
}
long e5_0575(long x)
{
    x = x * 3 + 66;
    return x ^ x >> 27;
}
long e5_0576(long x)
{
    x = x * 3 + 73;
    return x ^ x >> 28;
}
long e5_0577(long x)
{
    x = x * 3 + 80;
    return x ^ x >> 29;
}
long e5_0578(long x)
{
    x = x * 3 + 87;
    return x ^ x >> 30;
}
long e5_0579(long x)
{
    x = x * 3 + 94;
    return x ^ x >> 31;
}
long e5_0580(long x)
{
    x = x * 3 + 101;
    return x ^ x >> 3;
}
long e5_0581(long x)
{
    x = x * 3 + 108;
    return x ^ x >> 4;
}
long e5_0582(long x)
{
    x = x * 3 + 115;
    return x ^ x >> 5;
}
long e5_0583(long x)
{
    x = x * 3 + 2;
    return x ^ x >> 6;
}
long e5_0584(long x)
{
    x = x * 3 + 9;
    return x ^ x >> 7;
}
long e5_0585(long x)
{
    x = x * 3 + 16;
    return x ^ x >> 8;
}
long e5_0586(long x)
{
    x = x * 3 + 23;
    return x ^ x >> 9;
}
long e5_0587(long x)
{
    x = x * 3 + 30;
    return x ^ x >> 10;
}
long e5_0588(long x)
{
    x = x * 3 + 37;
    return x ^ x >> 11;
}
long e5_0589(long x)
{
    x = x * 3 + 44;
    return x ^ x >> 12;
}
long e5_0590(long x)
{
    x = x * 3 + 51;
    return x ^ x >> 13;
}
long e5_0591(long x)
{
    x = x * 3 + 58;
    return x ^ x >> 14;
}
long e5_0592(long x)
{
    x = x * 3 + 65;
    return x ^ x >> 15;
}
long e5_0593(long x)
{
    x = x * 3 + 72;
    return x ^ x >> 16;
}
long e5_0594(long x)
{
    x = x * 3 + 79;
    return x ^ x >> 17;
}
long e5_0595(long x)
{
    x = x * 3 + 86;
    return x ^ x >> 18;
}
long e5_0596(long x)
{
    x = x * 3 + 93;
    return x ^ x >> 19;
}
long e5_0597(long x)
{
    x = x * 3 + 100;
    return x ^ x >> 20;
}
long e5_0598(long x)
{
    x = x * 3 + 107;
    return x ^ x >> 21;
}
long e5_0599(long x)
{
    x = x * 3 + 114;
    return x ^ x >> 22;
}
long e5_0600(long x)
{
    x = x * 3 + 1;
    return x ^ x >> 23;
}
long e5_0601(long x)
{
    x = x * 3 + 8;
    return x ^ x >> 24;
}
long e5_0602(long x)
{
    x = x * 3 + 15;
    return x ^ x >> 25;
}
long e5_0603(long x)
{
    x = x * 3 + 22;
    return x ^ x >> 26;
}
long e5_0604(long x)
{
    x = x * 3 + 29;
    return x ^ x >> 27;
}
long e5_0605(long x)
{
    x = x * 3 + 36;
    return x ^ x >> 28;
}
long e5_0606(long x)
{
    x = x * 3 + 43;
    return x ^ x >> 29;
}
long e5_0607(long x)
{
    x = x * 3 + 50;
    return x ^ x >> 30;
}
long e5_0608(long x)
{
    x = x * 3 + 57;
    return x ^ x >> 31;
}
long e5_0609(long x)
{
    x = x * 3 + 64;
    return x ^ x >> 3;
}
long e5_0610(long x)
{
    x = x * 3 + 71;
    return x ^ x >> 4;
}
long e5_0611(long x)
{
    x = x * 3 + 78;
    return x ^ x >> 5;
}
long e5_0612(long x)
{
    x = x * 3 + 85;
    return x ^ x >> 6;
}
long e5_0613(long x)
{
    x = x * 3 + 92;
    return x ^ x >> 7;
}
long e5_0614(long x)
{
    x = x * 3 + 99;
    return x ^ x >> 8;
}
long e5_0615(long x)
{
    x = x * 3 + 106;
    return x ^ x >> 9;
}
long e5_0616(long x)
{
    x = x * 3 + 113;
    return x ^ x >> 10;
}
long e5_0617(long x)
{
    x = x * 3 + 120;
    return x ^ x >> 11;
}
long e5_0618(long x)
{
    x = x * 3 + 7;
    return x ^ x >> 12;
}
long e5_0619(long x)
{
    x = x * 3 + 14;
    return x ^ x >> 13;
}
long e5_0620(long x)
{
    x = x * 3 + 21;
    return x ^ x >> 14;
}
long e5_0621(long x)
{
    x = x * 3 + 28;
    return x ^ x >> 15;
}
long e5_0622(long x)
{
    x = x * 3 + 35;
    return x ^ x >> 16;
}
long e5_0623(long x)
{
    x = x * 3 + 42;
    return x ^ x >> 17;
}
long e5_0624(long x)
{
    x = x * 3 + 49;
    return x ^ x >> 18;
}
long e5_0625(long x)
{
    x = x * 3 + 56;
    return x ^ x >> 19;
}
long e5_0626(long x)
{
    x = x * 3 + 63;
    return x ^ x >> 20;
}
long e5_0627(long x)
{
    x = x * 3 + 70;
    return x ^ x >> 21;
}
long e5_0628(long x)
{
    x = x * 3 + 77;
    return x ^ x >> 22;
}
long e5_0629(long x)
{
    x = x * 3 + 84;
    return x ^ x >> 23;
}
long e5_0630(long x)
{
    x = x * 3 + 91;
    return x ^ x >> 24;
}
long e5_0631(long x)
{
    x = x * 3 + 98;
    return x ^ x >> 25;
}
long e5_0632(long x)
{
    x = x * 3 + 105;
    return x ^ x >> 26;
}
long e5_0633(long x)
{
    x = x * 3 + 112;
    return x ^ x >> 27;
}
long e5_0634(long x)
{
    x = x * 3 + 119;
    return x ^ x >> 28;
}
long e5_0635(long x)
{
    x = x * 3 + 6;
    return x ^ x >> 29;
}
long e5_0636(long x)
{
    x = x * 3 + 13;
    return x ^ x >> 30;
}
long e5_0637(long x)
{
    x = x * 3 + 20;
    return x ^ x >> 31;
}
long e5_0638(long x)
{
    x = x * 3 + 27;
    return x ^ x >> 3;
}
long e5_0639(long x)
{
    x = x * 3 + 34;
    return x ^ x >> 4;
}
long e5_0640(long x)
{
    x = x * 3 + 41;
    return x ^ x >> 5;
}
long e5_0641(long x)
{
    x = x * 3 + 48;
    return x ^ x >> 6;
}
long e5_0642(long x)
{
    x = x * 3 + 55;
    return x ^ x >> 7;
}
long e5_0643(long x)
{
    x = x * 3 + 62;
    return x ^ x >> 8;
}
long e5_0644(long x)
{
    x = x * 3 + 69;
    return x ^ x >> 9;
}
long e5_0645(long x)
{
    x = x * 3 + 76;
    return x ^ x >> 10;
}
long e5_0646(long x)
{
    x = x * 3 + 83;
    return x ^ x >> 11;
}
long e5_0647(long x)
{
    x = x * 3 + 90;
    return x ^ x >> 12;
}
long e5_0648(long x)
{
    x = x * 3 + 97;
    return x ^ x >> 13;
}
long e5_0649(long x)
{
    x = x * 3 + 104;
    return x ^ x >> 14;
}
long e5_0650(long x)
{
    x = x * 3 + 111;
    return x ^ x >> 15;
}
long e5_0651(long x)
{
    x = x * 3 + 118;
    return x ^ x >> 16;
}
long e5_0652(long x)
{
    x = x * 3 + 5;
    return x ^ x >> 17;
}
long e5_0653(long x)
{
    x = x * 3 + 12;
    return x ^ x >> 18;
}
long e5_0654(long x)
{
    x = x * 3 + 19;
    return x ^ x >> 19;
}
long e5_0655(long x)
{
    x = x * 3 + 26;
    return x ^ x >> 20;
}
long e5_0656(long x)
{
    x = x * 3 + 33;
    return x ^ x >> 21;
}
long e5_0657(long x)
{
    x = x * 3 + 40;
    return x ^ x >> 22;
}
long e5_0658(long x)
{
    x = x * 3 + 47;
    return x ^ x >> 23;
}
long e5_0659(long x)
{
    x = x * 3 + 54;
    return x ^ x >> 24;
}
long e5_0660(long x)
{
    x = x * 3 + 61;
    return x ^ x >> 25;
}
long e5_0661(long x)
{
    x = x * 3 + 68;
    return x ^ x >> 26;
}
long e5_0662(long x)
{
    x = x * 3 + 75;
    return x ^ x >> 27;
}
long e5_0663(long x)
{
    x = x * 3 + 82;
    return x ^ x >> 28;
}
long e5_0664(long x)
{
    x = x * 3 + 89;
    return x ^ x >> 29;
}
long e5_0665(long x)
{
    x = x * 3 + 96;
    return x ^ x >> 30;
}
long e5_0666(long x)
{
    x = x * 3 + 103;
    return x ^ x >> 31;
}
long e5_0667(long x)
{
    x = x * 3 + 110;
    return x ^ x >> 3;
}
long e5_0668(long x)
{
    x = x * 3 + 117;
    return x ^ x >> 4;
}
long e5_0669(long x)
{
    x = x * 3 + 4;
    return x ^ x >> 5;
}
long e5_0670(long x)
{
    x = x * 3 + 11;
    return x ^ x >> 6;
}
long e5_0671(long x)
{
    x = x * 3 + 18;
    return x ^ x >> 7;
}
long e5_0672(long x)
{
    x = x * 3 + 25;
    return x ^ x >> 8;
}
long e5_0673(long x)
{
    x = x * 3 + 32;
    return x ^ x >> 9;
}
long e5_0674(long x)
{
    x = x * 3 + 39;
    return x ^ x >> 10;
}
long e5_0675(long x)
{
    x = x * 3 + 46;
    return x ^ x >> 11;
}
long e5_0676(long x)
{
    x = x * 3 + 53;
    return x ^ x >> 12;
}
long e5_0677(long x)
{
    x = x * 3 + 60;
    return x ^ x >> 13;
}
long e5_0678(long x)
{
    x = x * 3 + 67;
    return x ^ x >> 14;
}
long e5_0679(long x)
{
    x = x * 3 + 74;
    return x ^ x >> 15;
}
long e5_0680(long x)
{
    x = x * 3 + 81;
    return x ^ x >> 16;
}
long e5_0681(long x)
{
    x = x * 3 + 88;
    return x ^ x >> 17;
}
long e5_0682(long x)
{
    x = x * 3 + 95;
    return x ^ x >> 18;
}
long e5_0683(long x)
{
    x = x * 3 + 102;
    return x ^ x >> 19;
}
long e5_0684(long x)
{
    x = x * 3 + 109;
    return x ^ x >> 20;
}
long e5_0685(long x)
{
    x = x * 3 + 116;
    return x ^ x >> 21;
}
long e5_0686(long x)
{
    x = x * 3 + 3;
    return x ^ x >> 22;
}
long e5_0687(long x)
{
    x = x * 3 + 10;
    return x ^ x >> 23;
}
long e5_0688(long x)
{
    x = x * 3 + 17;
    return x ^ x >> 24;
}
long e5_0689(long x)
{
    x = x * 3 + 24;
    return x ^ x >> 25;
}
long e5_0690(long x)
{
    x = x * 3 + 31;
    return x ^ x >> 26;
}
long e5_0691(long x)
{
    x = x * 3 + 38;
    return x ^ x >> 27;
}
long e5_0692(long x)
{
    x = x * 3 + 45;
    return x ^ x >> 28;
}
long e5_0693(long x)
{
    x = x * 3 + 52;
    return x ^ x >> 29;
}
long e5_0694(long x)
{
    x = x * 3 + 59;
    return x ^ x >> 30;
}
long e5_0695(long x)
{
    x = x * 3 + 66;
    return x ^ x >> 31;
}
long e5_0696(long x)
{
    x = x * 3 + 73;
    return x ^ x >> 3;
}
long e5_0697(long x)
{
    x = x * 3 + 80;
    return x ^ x >> 4;
}
long e5_0698(long x)
{
    x = x * 3 + 87;
    return x ^ x >> 5;
}
long e5_0699(long x)
{
    x = x * 3 + 94;
    return x ^ x >> 6;
}
long e5_0700(long x)
{
    x = x * 3 + 101;
    return x ^ x >> 7;
}
long e5_0701(long x)
{
    x = x * 3 + 108;
    return x ^ x >> 8;
}
long e5_0702(long x)
{
    x = x * 3 + 115;
    return x ^ x >> 9;
}
long e5_0703(long x)
{
    x = x * 3 + 2;
    return x ^ x >> 10;
}
long e5_0704(long x)
{
    x = x * 3 + 9;
    return x ^ x >> 11;
}
long e5_0705(long x)
{
    x = x * 3 + 16;
    return x ^ x >> 12;
}
long e5_0706(long x)
{
    x = x * 3 + 23;
    return x ^ x >> 13;
}
long e5_0707(long x)
{
    x = x * 3 + 30;
    return x ^ x >> 14;
}
long e5_0708(long x)
{
    x = x * 3 + 37;
    return x ^ x >> 15;
}
long e5_0709(long x)
{
    x = x * 3 + 44;
    return x ^ x >> 16;
}
long e5_0710(long x)
{
    x = x * 3 + 51;
    return x ^ x >> 17;
}
long e5_0711(long x)
{
    x = x * 3 + 58;
    return x ^ x >> 18;
}
long e5_0712(long x)
{
    x = x * 3 + 65;
    return x ^ x >> 19;
}
long e5_0713(long x)
{
    x = x * 3 + 72;
    return x ^ x >> 20;
}
long e5_0714(long x)
{
    x = x * 3 + 79;
    return x ^ x >> 21;
}
long e5_0715(long x)
{
    x = x * 3 + 86;
    return x ^ x >> 22;
}
long e5_0716(long x)
{
    x = x * 3 + 93;
    return x ^ x >> 23;
}
long e5_0717(long x)
{
    x = x * 3 + 100;
    return x ^ x >> 24;
}
long e5_0718(long x)
{
    x = x * 3 + 107;
    return x ^ x >> 25;
}
long e5_0719(long x)
{
    x = x * 3 + 114;
    return x ^ x >> 26;
}
long e5_0720(long x)
{
    x = x * 3 + 1;
    return x ^ x >> 27;
}
long e5_0721(long x)
{
    x = x * 3 + 8;
    return x ^ x >> 28;
}
long e5_0722(long x)
{
    x = x * 3 + 15;
    return x ^ x >> 29;
}
long e5_0723(long x)
{
    x = x * 3 + 22;
    return x ^ x >> 30;
}
long e5_0724(long x)
{
    x = x * 3 + 29;
    return x ^ x >> 31;
}
long e5_0725(long x)
{
    x = x * 3 + 36;
    return x ^ x >> 3;
}
long e5_0726(long x)
{
    x = x * 3 + 43;
    return x ^ x >> 4;
}
long e5_0727(long x)
{
    x = x * 3 + 50;
    return x ^ x >> 5;
}
long e5_0728(long x)
{
    x = x * 3 + 57;
    return x ^ x >> 6;
}
long e5_0729(long x)
{
    x = x * 3 + 64;
    return x ^ x >> 7;
}
long e5_0730(long x)
{
    x = x * 3 + 71;
    return x ^ x >> 8;
}
long e5_0731(long x)
{
    x = x * 3 + 78;
    return x ^ x >> 9;
}
long e5_0732(long x)
{
    x = x * 3 + 85;
    return x ^ x >> 10;
}
long e5_0733(long x)
{
    x = x * 3 + 92;
    return x ^ x >> 11;
}
long e5_0734(long x)
{
    x = x * 3 + 99;
    return x ^ x >> 12;
}
long e5_0735(long x)
{
    x = x * 3 + 106;
    return x ^ x >> 13;
}
long e5_0736(long x)
{
    x = x * 3 + 113;
    return x ^ x >> 14;
}
long e5_0737(long x)
{
    x = x * 3 + 120;
    return x ^ x >> 15;
}
long e5_0738(long x)
{
    x = x * 3 + 7;
    return x ^ x >> 16;
}
long e5_0739(long x)
{
    x = x * 3 + 14;
    return x ^ x >> 17;
}
long e5_0740(long x)
{
    x = x * 3 + 21;
    return x ^ x >> 18;
}
long e5_0741(long x)
{
    x = x * 3 + 28;
    return x ^ x >> 19;
}
long e5_0742(long x)
{
    x = x * 3 + 35;
    return x ^ x >> 20;
}
long e5_0743(long x)
{
    x = x * 3 + 42;
    return x ^ x >> 21;
}
long e5_0744(long x)
{
    x = x * 3 + 49;
    return x ^ x >> 22;
}
long e5_0745(long x)
{
    x = x * 3 + 56;
    return x ^ x >> 23;
}
long e5_0746(long x)
{
    x = x * 3 + 63;
    return x ^ x >> 24;
}
long e5_0747(long x)
{
    x = x * 3 + 70;
    return x ^ x >> 25;
}
long e5_0748(long x)
{
    x = x * 3 + 77;
    return x ^ x >> 26;
}
long e5_0749(long x)
{
    x = x * 3 + 84;
    return x ^ x >> 27;
}
long e5_0750(long x)
{
    x = x * 3 + 91;
    return x ^ x >> 28;
}
long e5_0751(long x)
{
    x = x * 3 + 98;
    return x ^ x >> 29;
}
long e5_0752(long x)
{
    x = x * 3 + 105;
    return x ^ x >> 30;
}
long e5_0753(long x)
{
    x = x * 3 + 112;
    return x ^ x >> 31;
}
long e5_0754(long x)
{
    x = x * 3 + 119;
    return x ^ x >> 3;
}
long e5_0755(long x)
{
    x = x * 3 + 6;
    return x ^ x >> 4;
}
long e5_0756(long x)
{
    x = x * 3 + 13;
    return x ^ x >> 5;
}
long e5_0757(long x)
{
    x = x * 3 + 20;
    return x ^ x >> 6;
}
long e5_0758(long x)
{
    x = x * 3 + 27;
    return x ^ x >> 7;
}
long e5_0759(long x)
{
    x = x * 3 + 34;
    return x ^ x >> 8;
}
long e5_0760(long x)
{
    x = x * 3 + 41;
    return x ^ x >> 9;
}
long e5_0761(long x)
{
    x = x * 3 + 48;
    return x ^ x >> 10;
}
long e5_0762(long x)
{
    x = x * 3 + 55;
    return x ^ x >> 11;
}
long e5_0763(long x)
{
    x = x * 3 + 62;
    return x ^ x >> 12;
}
long e5_0764(long x)
{
    x = x * 3 + 69;
    return x ^ x >> 13;
}
long e5_0765(long x)
{
    x = x * 3 + 76;
    return x ^ x >> 14;
}
long e5_0766(long x)
{
    x = x * 3 + 83;
    return x ^ x >> 15;
}
long e5_0767(long x)
{
    x = x * 3 + 90;
    return x ^ x >> 16;
}
long e5_0768(long x)
{
    x = x * 3 + 97;
    return x ^ x >> 17;
}
long e5_0769(long x)
{
    x = x * 3 + 104;
    return x ^ x >> 18;
}
long e5_0770(long x)
{
    x = x * 3 + 111;
    return x ^ x >> 19;
}
long e5_0771(long x)
{
    x = x * 3 + 118;
    return x ^ x >> 20;
}
long e5_0772(long x)
{
    x = x * 3 + 5;
    return x ^ x >> 21;
}
long e5_0773(long x)
{
    x = x * 3 + 12;
    return x ^ x >> 22;
}
long e5_0774(long x)
{
    x = x * 3 + 19;
    return x ^ x >> 23;
}
long e5_0775(long x)
{
    x = x * 3 + 26;
    return x ^ x >> 24;
}
long e5_0776(long x)
{
    x = x * 3 + 33;
    return x ^ x >> 25;
}
long e5_0777(long x)
{
    x = x * 3 + 40;
    return x ^ x >> 26;
}
long e5_0778(long x)
{
    x = x * 3 + 47;
    return x ^ x >> 27;
}
long e5_0779(long x)
{
    x = x * 3 + 54;
    return x ^ x >> 28;
}
long e5_0780(long x)
{
    x = x * 3 + 61;
    return x ^ x >> 29;
}
long e5_0781(long x)
{
    x = x * 3 + 68;
    return x ^ x >> 30;
}
long e5_0782(long x)
{
    x = x * 3 + 75;
    return x ^ x >> 31;
}
long e5_0783(long x)
{
    x = x * 3 + 82;
    return x ^ x >> 3;
}
long e5_0784(long x)
{
    x = x * 3 + 89;
    return x ^ x >> 4;
}
long e5_0785(long x)
{
    x = x * 3 + 96;
    return x ^ x >> 5;
}
long e5_0786(long x)
{
    x = x * 3 + 103;
    return x ^ x >> 6;
}
long e5_0787(long x)
{
    x = x * 3 + 110;
    return x ^ x >> 7;
}
long e5_0788(long x)
{
    x = x * 3 + 117;
    return x ^ x >> 8;
}
long e5_0789(long x)
{
    x = x * 3 + 4;
    return x ^ x >> 9;
}
long e5_0790(long x)
{
    x = x * 3 + 11;
    return x ^ x >> 10;
}
long e5_0791(long x)
{
    x = x * 3 + 18;
    return x ^ x >> 11;
}
long e5_0792(long x)
{
    x = x * 3 + 25;
    return x ^ x >> 12;
}
long e5_0793(long x)
{
    x = x * 3 + 32;
    return x ^ x >> 13;
}
long e5_0794(long x)
{
    x = x * 3 + 39;
    return x ^ x >> 14;
}
long e5_0795(long x)
{
    x = x * 3 + 46;
    return x ^ x >> 15;
}
long e5_0796(long x)
{
    x = x * 3 + 53;
    return x ^ x >> 16;
}
long e5_0797(long x)
{
    x = x * 3 + 60;
    return x ^ x >> 17;
}
long e5_0798(long x)
{
    x = x * 3 + 67;
    return x ^ x >> 18;
}
long e5_0799(long x)
{
    x = x * 3 + 74;
    return x ^ x >> 19;
}
long e5_0800(long x)
{
    x = x * 3 + 81;
    return x ^ x >> 20;
}
long e5_0801(long x)
{
    x = x * 3 + 88;
    return x ^ x >> 21;
}
long e5_0802(long x)
{
    x = x * 3 + 95;
    return x ^ x >> 22;
}
long e5_0803(long x)
{
    x = x * 3 + 102;
    return x ^ x >> 23;
}
long e5_0804(long x)
{
    x = x * 3 + 109;
    return x ^ x >> 24;
}
long e5_0805(long x)
{
    x = x * 3 + 116;
    return x ^ x >> 25;
}
long e5_0806(long x)
{
    x = x * 3 + 3;
    return x ^ x >> 26;
}
long e5_0807(long x)
{
    x = x * 3 + 10;
    return x ^ x >> 27;
}
long e5_0808(long x)
{
    x = x * 3 + 17;
    return x ^ x >> 28;
}
long e5_0809(long x)
{
    x = x * 3 + 24;
    return x ^ x >> 29;
}
long e5_0810(long x)
{
    x = x * 3 + 31;
    return x ^ x >> 30;
}
long e5_0811(long x)
{
    x = x * 3 + 38;
    return x ^ x >> 31;
}
long e5_0812(long x)
{
    x = x * 3 + 45;
    return x ^ x >> 3;
}
long e5_0813(long x)
{
    x = x * 3 + 52;
    return x ^ x >> 4;
}
long e5_0814(long x)
{
    x = x * 3 + 59;
    return x ^ x >> 5;
}
long e5_0815(long x)
{
    x = x * 3 + 66;
    return x ^ x >> 6;
}
long e5_0816(long x)
{
    x = x * 3 + 73;
    return x ^ x >> 7;
}
long e5_0817(long x)
{
    x = x * 3 + 80;
    return x ^ x >> 8;
}
long e5_0818(long x)
{
    x = x * 3 + 87;
    return x ^ x >> 9;
}
long e5_0819(long x)
{
    x = x * 3 + 94;
    return x ^ x >> 10;
}
long e5_0820(long x)
{
    x = x * 3 + 101;
    return x ^ x >> 11;
}
long e5_0821(long x)
{
    x = x * 3 + 108;
    return x ^ x >> 12;
}
long e5_0822(long x)
{
    x = x * 3 + 115;
    return x ^ x >> 13;
}
long e5_0823(long x)
{
    x = x * 3 + 2;
    return x ^ x >> 14;
}
long e5_0824(long x)
{
    x = x * 3 + 9;
    return x ^ x >> 15;
}
long e5_0825(long x)
{
    x = x * 3 + 16;
    return x ^ x >> 16;
}
long e5_0826(long x)
{
    x = x * 3 + 23;
    return x ^ x >> 17;
}
long e5_0827(long x)
{
    x = x * 3 + 30;
    return x ^ x >> 18;
}
long e5_0828(long x)
{
    x = x * 3 + 37;
    return x ^ x >> 19;
}
long e5_0829(long x)
{
    x = x * 3 + 44;
    return x ^ x >> 20;
}
long e5_0830(long x)
{
    x = x * 3 + 51;
    return x ^ x >> 21;
}
long e5_0831(long x)
{
    x = x * 3 + 58;
    return x ^ x >> 22;
}
long e5_0832(long x)
{
    x = x * 3 + 65;
    return x ^ x >> 23;
}
long e5_0833(long x)
{
    x = x * 3 + 72;
    return x ^ x >> 24;
}
long e5_0834(long x)
{
    x = x * 3 + 79;
    return x ^ x >> 25;
}
long e5_0835(long x)
{
    x = x * 3 + 86;
    return x ^ x >> 26;
}
long e5_0836(long x)
{
    x = x * 3 + 93;
    return x ^ x >> 27;
}
long e5_0837(long x)
{
    x = x * 3 + 100;
    return x ^ x >> 28;
}
long e5_0838(long x)
{
    x = x * 3 + 107;
    return x ^ x >> 29;
}
long e5_0839(long x)
{
    x = x * 3 + 114;
    return x ^ x >> 30;
}
long e5_0840(long x)
{
    x = x * 3 + 1;
    return x ^ x >> 31;
}
long e5_0841(long x)
{
    x = x * 3 + 8;
    return x ^ x >> 3;
}
long e5_0842(long x)
{
    x = x * 3 + 15;
    return x ^ x >> 4;
}
long e5_0843(long x)
{
    x = x * 3 + 22;
    return x ^ x >> 5;
}
long e5_0844(long x)
{
    x = x * 3 + 29;
    return x ^ x >> 6;
}
long e5_0845(long x)
{
    x = x * 3 + 36;
    return x ^ x >> 7;
}
long e5_0846(long x)
{
    x = x * 3 + 43;
    return x ^ x >> 8;
}
long e5_0847(long x)
{
    x = x * 3 + 50;
    return x ^ x >> 9;
}
long e5_0848(long x)
{
    x = x * 3 + 57;
    return x ^ x >> 10;
}
long e5_0849(long x)
{
    x = x * 3 + 64;
    return x ^ x >> 11;
}
long e5_0850(long x)
{
    x = x * 3 + 71;
    return x ^ x >> 12;
}
long e5_0851(long x)
{
    x = x * 3 + 78;
    return x ^ x >> 13;
}
long e5_0852(long x)
{
    x = x * 3 + 85;
    return x ^ x >> 14;
}
long e5_0853(long x)
{
    x = x * 3 + 92;
    return x ^ x >> 15;
}
long e5_0854(long x)
{
    x = x * 3 + 99;
    return x ^ x >> 16;
}
long e5_0855(long x)
{
    x = x * 3 + 106;
    return x ^ x >> 17;
}
long e5_0856(long x)
{
    x = x * 3 + 113;
    return x ^ x >> 18;
}
long e5_0857(long x)
{
    x = x * 3 + 120;
    return x ^ x >> 19;
}
long e5_0858(long x)
{
    x = x * 3 + 7;
    return x ^ x >> 20;
}
long e5_0859(long x)
{
    x = x * 3 + 14;
    return x ^ x >> 21;
}
long e5_0860(long x)
{
    x = x * 3 + 21;
    return x ^ x >> 22;
}
long e5_0861(long x)
{
    x = x * 3 + 28;
    return x ^ x >> 23;
}
long e5_0862(long x)
{
    x = x * 3 + 35;
    return x ^ x >> 24;
}
long e5_0863(long x)
{
    x = x * 3 + 42;
    return x ^ x >> 25;
}
long e5_0864(long x)
{
    x = x * 3 + 49;
    return x ^ x >> 26;
}
long e5_0865(long x)
{
    x = x * 3 + 56;
    return x ^ x >> 27;
}
long e5_0866(long x)
{
    x = x * 3 + 63;
    return x ^ x >> 28;
}
long e5_0867(long x)
{
    x = x * 3 + 70;
    return x ^ x >> 29;
}
long e5_0868(long x)
{
    x = x * 3 + 77;
    return x ^ x >> 30;
}
long e5_0869(long x)
{
    x = x * 3 + 84;
    return x ^ x >> 31;
}
long e5_0870(long x)
{
    x = x * 3 + 91;
    return x ^ x >> 3;
}
long e5_0871(long x)
{
    x = x * 3 + 98;
    return x ^ x >> 4;
}
long e5_0872(long x)
{
    x = x * 3 + 105;
    return x ^ x >> 5;
}
long e5_0873(long x)
{
    x = x * 3 + 112;
    return x ^ x >> 6;
}
long e5_0874(long x)
{
    x = x * 3 + 119;
    return x ^ x >> 7;
}
long e5_0875(long x)
{
    x = x * 3 + 6;
    return x ^ x >> 8;
}
long e5_0876(long x)
{
    x = x * 3 + 13;
    return x ^ x >> 9;
}
long e5_0877(long x)
{
    x = x * 3 + 20;
    return x ^ x >> 10;
}
long e5_0878(long x)
{
    x = x * 3 + 27;
    return x ^ x >> 11;
}
long e5_0879(long x)
{
    x = x * 3 + 34;
    return x ^ x >> 12;
}
long e5_0880(long x)
{
    x = x * 3 + 41;
    return x ^ x >> 13;
}
long e5_0881(long x)
{
    x = x * 3 + 48;
    return x ^ x >> 14;
}
long e5_0882(long x)
{
    x = x * 3 + 55;
    return x ^ x >> 15;
}
long e5_0883(long x)
{
    x = x * 3 + 62;
    return x ^ x >> 16;
}
long e5_0884(long x)
{
    x = x * 3 + 69;
    return x ^ x >> 17;
}
long e5_0885(long x)
{
    x = x * 3 + 76;
    return x ^ x >> 18;
}
long e5_0886(long x)
{
    x = x * 3 + 83;
    return x ^ x >> 19;
}
long e5_0887(long x)
{
    x = x * 3 + 90;
    return x ^ x >> 20;
}
long e5_0888(long x)
{
    x = x * 3 + 97;
    return x ^ x >> 21;
}
long e5_0889(long x)
{
    x = x * 3 + 104;
    return x ^ x >> 22;
}
long e5_0890(long x)
{
    x = x * 3 + 111;
    return x ^ x >> 23;
}
long e5_0891(long x)
{
    x = x * 3 + 118;
    return x ^ x >> 24;
}
long e5_0892(long x)
{
    x = x * 3 + 5;
    return x ^ x >> 25;
}
long e5_0893(long x)
{
    x = x * 3 + 12;
    return x ^ x >> 26;
}
long e5_0894(long x)
{
    x = x * 3 + 19;
    return x ^ x >> 27;
}
long e5_0895(long x)
{
    x = x * 3 + 26;
    return x ^ x >> 28;
}
long e5_0896(long x)
{
    x = x * 3 + 33;
    return x ^ x >> 29;
}
long e5_0897(long x)
{
    x = x * 3 + 40;
    return x ^ x >> 30;
}
long e5_0898(long x)
{
    x = x * 3 + 47;
    return x ^ x >> 31;
}
long e5_0899(long x)
{
    x = x * 3 + 54;
    return x ^ x >> 3;
}
long e5_0900(long x)
{
    x = x * 3 + 61;
    return x ^ x >> 4;
}
long e5_0901(long x)
{
    x = x * 3 + 68;
    return x ^ x >> 5;
}
long e5_0902(long x)
{
    x = x * 3 + 75;
    return x ^ x >> 6;
}
long e5_0903(long x)
{
    x = x * 3 + 82;
    return x ^ x >> 7;
}
long e5_0904(long x)
{
    x = x * 3 + 89;
    return x ^ x >> 8;
}
long e5_0905(long x)
{
    x = x * 3 + 96;
    return x ^ x >> 9;
}
long e5_0906(long x)
{
    x = x * 3 + 103;
    return x ^ x >> 10;
}
long e5_0907(long x)
{
    x = x * 3 + 110;
    return x ^ x >> 11;
}
long e5_0908(long x)
{
    x = x * 3 + 117;
    return x ^ x >> 12;
}
long e5_0909(long x)
{
    x = x * 3 + 4;
    return x ^ x >> 13;
}
long e5_0910(long x)
{
    x = x * 3 + 11;
    return x ^ x >> 14;
}
long e5_0911(long x)
{
    x = x * 3 + 18;
    return x ^ x >> 15;
}
long e5_0912(long x)
{
    x = x * 3 + 25;
    return x ^ x >> 16;
}
long e5_0913(long x)
{
    x = x * 3 + 32;
    return x ^ x >> 17;
}
long e5_0914(long x)
{
    x = x * 3 + 39;
    return x ^ x >> 18;
}
long e5_0915(long x)
{
    x = x * 3 + 46;
    return x ^ x >> 19;
}
long e5_0916(long x)
{
    x = x * 3 + 53;
    return x ^ x >> 20;
}
long e5_0917(long x)
{
    x = x * 3 + 60;
    return x ^ x >> 21;
}
long e5_0918(long x)
{
    x = x * 3 + 67;
    return x ^ x >> 22;
}
long e5_0919(long x)
{
    x = x * 3 + 74;
    return x ^ x >> 23;
}
long e5_0920(long x)
{
    x = x * 3 + 81;
    return x ^ x >> 24;
}
long e5_0921(long x)
{
    x = x * 3 + 88;
    return x ^ x >> 25;
}
long e5_0922(long x)
{
    x = x * 3 + 95;
    return x ^ x >> 26;
}
long e5_0923(long x)
{
    x = x * 3 + 102;
    return x ^ x >> 27;
}
long e5_0924(long x)
{
    x = x * 3 + 109;
    return x ^ x >> 28;
}
long e5_0925(long x)
{
    x = x * 3 + 116;
    return x ^ x >> 29;
}
long e5_0926(long x)
{
    x = x * 3 + 3;
    return x ^ x >> 30;
}
long e5_0927(long x)
{
    x = x * 3 + 10;
    return x ^ x >> 31;
}
long e5_0928(long x)
{
    x = x * 3 + 17;
    return x ^ x >> 3;
}
long e5_0929(long x)
{
    x = x * 3 + 24;
    return x ^ x >> 4;
}
long e5_0930(long x)
{
    x = x * 3 + 31;
    return x ^ x >> 5;
}
long e5_0931(long x)
{
    x = x * 3 + 38;
    return x ^ x >> 6;
}
long e5_0932(long x)
{
    x = x * 3 + 45;
    return x ^ x >> 7;
}
long e5_0933(long x)
{
    x = x * 3 + 52;
    return x ^ x >> 8;
}
long e5_0934(long x)
{
    x = x * 3 + 59;
    return x ^ x >> 9;
}
long e5_0935(long x)
{
    x = x * 3 + 66;
    return x ^ x >> 10;
}
long e5_0936(long x)
{
    x = x * 3 + 73;
    return x ^ x >> 11;
}
long e5_0937(long x)
{
    x = x * 3 + 80;
    return x ^ x >> 12;
}
long e5_0938(long x)
{
    x = x * 3 + 87;
    return x ^ x >> 13;
}
long e5_0939(long x)
{
    x = x * 3 + 94;
    return x ^ x >> 14;
}
long e5_0940(long x)
{
    x = x * 3 + 101;
    return x ^ x >> 15;
}
long e5_0941(long x)
{
    x = x * 3 + 108;
    return x ^ x >> 16;
}
long e5_0942(long x)
{
    x = x * 3 + 115;
    return x ^ x >> 17;
}
long e5_0943(long x)
{
    x = x * 3 + 2;
    return x ^ x >> 18;
}
long e5_0944(long x)
{
    x = x * 3 + 9;
    return x ^ x >> 19;
}
long e5_0945(long x)
{
    x = x * 3 + 16;
    return x ^ x >> 20;
}
long e5_0946(long x)
{
    x = x * 3 + 23;
    return x ^ x >> 21;
}
long e5_0947(long x)
{
    x = x * 3 + 30;
    return x ^ x >> 22;
}
long e5_0948(long x)
{
    x = x * 3 + 37;
    return x ^ x >> 23;
}
long e5_0949(long x)
{
    x = x * 3 + 44;
    return x ^ x >> 24;
}
long e5_0950(long x)
{
    x = x * 3 + 51;
    return x ^ x >> 25;
}
long e5_0951(long x)
{
    x = x * 3 + 58;
    return x ^ x >> 26;
}
long e5_0952(long x)
{
    x = x * 3 + 65;
    return x ^ x >> 27;
}
long e5_0953(long x)
{
    x = x * 3 + 72;
    return x ^ x >> 28;
}
long e5_0954(long x)
{
    x = x * 3 + 79;
    return x ^ x >> 29;
}
long e5_0955(long x)
{
    x = x * 3 + 86;
    return x ^ x >> 30;
}
long e5_0956(long x)
{
    x = x * 3 + 93;
    return x ^ x >> 31;
}
long e5_0957(long x)
{
    x = x * 3 + 100;
    return x ^ x >> 3;
}
long e5_0958(long x)
{
    x = x * 3 + 107;
    return x ^ x >> 4;
}
long e5_0959(long x)
{
    x = x * 3 + 114;
    return x ^ x >> 5;
}
long e5_0960(long x)
{
    x = x * 3 + 1;
    return x ^ x >> 6;
}
long e5_0961(long x)
{
    x = x * 3 + 8;
    return x ^ x >> 7;
}
long e5_0962(long x)
{
    x = x * 3 + 15;
    return x ^ x >> 8;
}
long e5_0963(long x)
{
    x = x * 3 + 22;
    return x ^ x >> 9;
}
long e5_0964(long x)
{
    x = x * 3 + 29;
    return x ^ x >> 10;
}
long e5_0965(long x)
{
    x = x * 3 + 36;
    return x ^ x >> 11;
}
long e5_0966(long x)
{
    x = x * 3 + 43;
    return x ^ x >> 12;
}
long e5_0967(long x)
{
    x = x * 3 + 50;
    return x ^ x >> 13;
}
long e5_0968(long x)
{
    x = x * 3 + 57;
    return x ^ x >> 14;
}
long e5_0969(long x)
{
    x = x * 3 + 64;
    return x ^ x >> 15;
}
long e5_0970(long x)
{
    x = x * 3 + 71;
    return x ^ x >> 16;
}
long e5_0971(long x)
{
    x = x * 3 + 78;
    return x ^ x >> 17;
}
long e5_0972(long x)
{
    x = x * 3 + 85;
    return x ^ x >> 18;
}
long e5_0973(long x)
{
    x = x * 3 + 92;
    return x ^ x >> 19;
}
long e5_0974(long x)
{
    x = x * 3 + 99;
    return x ^ x >> 20;
}
long e5_0975(long x)
{
    x = x * 3 + 106;
    return x ^ x >> 21;
}
long e5_0976(long x)
{
    x = x * 3 + 113;
    return x ^ x >> 22;
}
long e5_0977(long x)
{
    x = x * 3 + 120;
    return x ^ x >> 23;
}
long e5_0978(long x)
{
    x = x * 3 + 7;
    return x ^ x >> 24;
}
long e5_0979(long x)
{
    x = x * 3 + 14;
    return x ^ x >> 25;
}
long e5_0980(long x)
{
    x = x * 3 + 21;
    return x ^ x >> 26;
}
long e5_0981(long x)
{
    x = x * 3 + 28;
    return x ^ x >> 27;
}
long e5_0982(long x)
{
    x = x * 3 + 35;
    return x ^ x >> 28;
}
long e5_0983(long x)
{
    x = x * 3 + 42;
    return x ^ x >> 29;
}
long e5_0984(long x)
{
    x = x * 3 + 49;
    return x ^ x >> 30;
}
long e5_0985(long x)
{
    x = x * 3 + 56;
    return x ^ x >> 31;
}
long e5_0986(long x)
{
    x = x * 3 + 63;
    return x ^ x >> 3;
}
long e5_0987(long x)
{
    x = x * 3 + 70;
    return x ^ x >> 4;
}
long e5_0988(long x)
{
    x = x * 3 + 77;
    return x ^ x >> 5;
}
long e5_0989(long x)
{
    x = x * 3 + 84;
    return x ^ x >> 6;
}
long e5_0990(long x)
{
    x = x * 3 + 91;
    return x ^ x >> 7;
}
long e5_0991(long x)
{
    x = x * 3 + 98;
    return x ^ x >> 8;
}
long e5_0992(long x)
{
    x = x * 3 + 105;
    return x ^ x >> 9;
}
long e5_0993(long x)
{
    x = x * 3 + 112;
    return x ^ x >> 10;
}
long e5_0994(long x)
{
    x = x * 3 + 119;
    return x ^ x >> 11;
}
long e5_0995(long x)
{
    x = x * 3 + 6;
    return x ^ x >> 12;
}
long e5_0996(long x)
{
    x = x * 3 + 13;
    return x ^ x >> 13;
}
long e5_0997(long x)
{
    x = x * 3 + 20;
    return x ^ x >> 14;
}
long e5_0998(long x)
{
    x = x * 3 + 27;
    return x ^ x >> 15;
}
long e5_0999(long x)
{
    x = x * 3 + 34;
    return x ^ x >> 16;
}
