/* Calls `leaves_work` 300 times, which never returns: 100 calls end by longjmp, 100 each by two other ways out that only
 * their code tells for what they are, as in a C library without symbols. */
#include <setjmp.h>
#include <stdio.h>

typedef long place[8];

__attribute__((returns_twice)) int keeps_place(place);
__attribute__((noreturn)) void goes_by_registers(place);
__attribute__((noreturn)) void goes_by_memory(place);
/* Is not called: it would come back. */
void goes_and_comes_back(long *, long);

__asm__(".text\n"
        ".globl keeps_place\n.type keeps_place, @function\nkeeps_place:\n"
        "mov %rbx, (%rdi)\n mov %rbp, 8(%rdi)\n mov %r12, 16(%rdi)\n mov %r13, 24(%rdi)\n mov %r14, 32(%rdi)\n"
        "mov %r15, 40(%rdi)\n lea 8(%rsp), %rdx\n mov %rdx, 48(%rdi)\n mov (%rsp), %rdx\n mov %rdx, 56(%rdi)\n"
        "xor %eax, %eax\n ret\n.size keeps_place, .-keeps_place\n"
        /* As in glibc. */
        ".globl goes_by_registers\n.type goes_by_registers, @function\ngoes_by_registers:\n"
        "mov 48(%rdi), %r8\n mov 8(%rdi), %r9\n mov 56(%rdi), %rdx\n mov (%rdi), %rbx\n mov 16(%rdi), %r12\n"
        "mov 24(%rdi), %r13\n mov 32(%rdi), %r14\n mov 40(%rdi), %r15\n mov $1, %eax\n mov %r8, %rsp\n mov %r9, %rbp\n"
        "jmp *%rdx\n.size goes_by_registers, .-goes_by_registers\n"
        /* As in musl. */
        ".globl goes_by_memory\n.type goes_by_memory, @function\ngoes_by_memory:\n"
        "mov $1, %eax\n mov (%rdi), %rbx\n mov 8(%rdi), %rbp\n mov 16(%rdi), %r12\n mov 24(%rdi), %r13\n"
        "mov 32(%rdi), %r14\n mov 40(%rdi), %r15\n mov 48(%rdi), %rsp\n jmp *56(%rdi)\n"
        ".size goes_by_memory, .-goes_by_memory\n"
        /* As libraries of coroutines do. */
        ".globl goes_and_comes_back\n.type goes_and_comes_back, @function\ngoes_and_comes_back:\n"
        "push %rbp\n push %rbx\n mov %rsp, (%rdi)\n mov %rsi, %rsp\n pop %rbx\n pop %rbp\n pop %r8\n jmp *%r8\n"
        ".size goes_and_comes_back, .-goes_and_comes_back\n");

static place own;
static jmp_buf libc;
static volatile long left;

__attribute__((noinline, noclone)) void leaves_work(int way) {
  left++;
  switch (way) {
  case 0:
    longjmp(libc, 1);
  case 1:
    goes_by_registers(own);
  default:
    goes_by_memory(own);
  }
}

int main(int argc, char **argv) {
  (void)argv;
  static volatile int i;
  if (argc > 9)
    goes_and_comes_back(own, argc);
  for (i = 0; i < 100; i++)
    if (!setjmp(libc))
      leaves_work(0);
  for (i = 0; i < 200; i++)
    if (!keeps_place(own))
      leaves_work(1 + i % 2);
  printf("%ld left\n", left);
  return left != 300;
}
