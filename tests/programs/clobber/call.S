/* harness_call(const struct state *in, struct state *out, function): loads the whole of `in` into
 * the processor, calls, and stores what is there afterwards. Layout: struct state in clobber.c. */
  .text
  .p2align 4
  .globl harness_call
  .type harness_call, @function
harness_call:
  push %rbx
  push %rbp
  push %r12
  push %r13
  push %r14
  push %r15
  mov %rsi, out_at(%rip)
  mov %rdx, function(%rip)
  mov %rsp, rsp_before(%rip)
  mov %rdi, %rbx
  sub $136, %rsp
  lea 136(%rbx), %rsi
  mov %rsp, %rdi
  mov $16, %ecx
  rep movsq
  mov 264(%rbx), %rcx
  mov $0xe7, %eax
  xor %edx, %edx
  xrstor64 (%rcx)
  pushq 128(%rbx)
  popfq
  mov 0(%rbx), %rax
  mov 8(%rbx), %rcx
  mov 16(%rbx), %rdx
  mov 40(%rbx), %rbp
  mov 48(%rbx), %rsi
  mov 56(%rbx), %rdi
  mov 64(%rbx), %r8
  mov 72(%rbx), %r9
  mov 80(%rbx), %r10
  mov 88(%rbx), %r11
  mov 96(%rbx), %r12
  mov 104(%rbx), %r13
  mov 112(%rbx), %r14
  mov 120(%rbx), %r15
  mov 24(%rbx), %rbx
  call *function(%rip)
  mov %rbx, rbx_after(%rip)
  mov out_at(%rip), %rbx
  mov %rax, 0(%rbx)
  mov %rcx, 8(%rbx)
  mov %rdx, 16(%rbx)
  mov %rsp, 32(%rbx)
  mov %rbp, 40(%rbx)
  mov %rsi, 48(%rbx)
  mov %rdi, 56(%rbx)
  mov %r8, 64(%rbx)
  mov %r9, 72(%rbx)
  mov %r10, 80(%rbx)
  mov %r11, 88(%rbx)
  mov %r12, 96(%rbx)
  mov %r13, 104(%rbx)
  mov %r14, 112(%rbx)
  mov %r15, 120(%rbx)
  pushfq
  popq 128(%rbx)
  mov rbx_after(%rip), %rax
  mov %rax, 24(%rbx)
  cld
  lea 136(%rbx), %rdi
  mov %rsp, %rsi
  mov $16, %ecx
  rep movsq
  mov 264(%rbx), %rcx
  mov $0xe7, %eax
  xor %edx, %edx
  xsave64 (%rcx)
  mov rsp_before(%rip), %rsp
  sub %rsp, 32(%rbx)
  fninit
  ldmxcsr default_mxcsr(%rip)
  pop %r15
  pop %r14
  pop %r13
  pop %r12
  pop %rbp
  pop %rbx
  ret
  .size harness_call, . - harness_call

.macro FUNCTION name
  .p2align 4
  .globl \name
  .type \name, @function
\name:
.endm
.macro END name
  .size \name, . - \name
.endm

FUNCTION clobber_nothing
  nopl 0(%rax,%rax)
  ret
END clobber_nothing

FUNCTION clobber_rax
  lea 1(%rdi), %rax
  nop
  ret
END clobber_rax

FUNCTION clobber_flags
  cmp %rsi, %rdi
  nopl (%rax)
  ret
END clobber_flags

FUNCTION clobber_tail
  nopl (%rax)
  jmp clobber_nothing
END clobber_tail

FUNCTION clobber_tail_if
  nopl (%rax)
  jc clobber_nothing
  ret
END clobber_tail_if

FUNCTION clobber_tail_memory
  nopl (%rax)
  jmp *slot(%rip)
END clobber_tail_memory

FUNCTION clobber_table
  lea 1f(%rip), %rax
  jmp *%rax
  ud2
1: nop
  ret
END clobber_table

/* Leaves by a computed jump, with data below its stack pointer. */
FUNCTION clobber_out_of_table
  mov %rdi, -128(%rsp)
  mov %rsi, -8(%rsp)
  lea clobber_red_zone(%rip), %rax
  jmp *%rax
END clobber_out_of_table

FUNCTION clobber_calls
  call clobber_nothing
  call clobber_nothing
  ret
END clobber_calls

/* Enters with data below its stack pointer: only ever jumped to. Not measured: its entry is
 * not a call. */
  .p2align 4
  .type clobber_red_zone, @function
clobber_red_zone:
  mov -128(%rsp), %rcx
  mov -8(%rsp), %rdx
  ret
  .size clobber_red_zone, . - clobber_red_zone

  .data
  .p2align 3
slot: .quad clobber_nothing
out_at: .quad 0
function: .quad 0
rsp_before: .quad 0
rbx_after: .quad 0
default_mxcsr: .long 0x1f80
  .section .note.GNU-stack, "", @progbits
