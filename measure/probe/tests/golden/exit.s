   0 push %rax
   1 lahf
   2 seto %al
   5 push %rax
   6 push %rcx
   7 push %rdx
   8 mov %fs:0,%rcx
  11 cmp %gs:0,%rcx
  1a jne 0x0000000000001080
  20 mov %gs:8,%rcx
  29 mov $0x10,%edx
  2e xadd %rdx,(%rcx)
  32 rorx $0x14,%rdx,%rax
  38 lea 0x20(%rsp,%rax),%eax
  3f and $0xFFFF0,%edx
  45 movq $0,0x1000(%rcx,%rdx)
  51 mov %eax,0x100C(%rcx,%rdx)
  58 movl $0x29,0x1008(%rcx,%rdx)
  63 add %rdx,%rcx
  66 rdtsc
  68 shl $0x20,%rdx
  6c or %rdx,%rax
  6f mov %rax,0x1000(%rcx)
  76 pop %rdx
  77 pop %rcx
  78 pop %rax
  79 add $0x7F,%al
  7b sahf
  7c pop %rax
  80 call 0x0000000000001000
  85 test %rcx,%rcx
  88 jne 0x0000000000001029
  8e jmp 0x0000000000001076
