/* Programs that live through being measured. Every round computes what is known beforehand. */
#ifndef TORTURE_H
#define TORTURE_H

#include <signal.h>

/* Set by SIGTERM. */
extern volatile sig_atomic_t stop;

/* The functions to measure: a leaf, a switch, recursion, a function pointer. Pure, and without a
 * call into libc. Compiled into the program and into the plug-in. */
unsigned work(unsigned seed);

#define SEEDS 16
/* What work(0…15) gave before anyone could attach. */
extern unsigned expected[SEEDS];

/* Each runs until `stop`; rounds are added to *rounds, wrong ones are returned. */
typedef unsigned long mode(unsigned long *rounds);
mode spinning, sleeping, waiting, forking, raw_cloning, threading, signalling, loading;

#endif
