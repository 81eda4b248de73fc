   0 lea -0x80(%rsp),%rsp
   5 push %rax
   6 lahf
   7 seto %al
   a push %rax
   b push %rcx
   c push %rdx
   d mov %fs:0,%rcx
  16 cmp %gs:0,%rcx
  1f jne 0x00000000000010C0
  25 mov %gs:8,%rcx
  2e mov $0x10,%edx
  33 xadd %rdx,(%rcx)
  37 mov %rdx,%rax
  3a shr $0x14,%rax
  3e lea 0xA0(%rsp,%rax),%eax
  45 and $0xFFFF0,%edx
  4b movq $0,0x1000(%rcx,%rdx)
  57 mov %eax,0x100C(%rcx,%rdx)
  5e movl $0x2A,0x1008(%rcx,%rdx)
  69 add %rdx,%rcx
  6c rdtsc
  6e shl $0x20,%rdx
  72 or %rdx,%rax
  75 mov %rax,0x1000(%rcx)
  7c pop %rdx
  7d pop %rcx
  7e pop %rax
  7f add $0x7F,%al
  81 sahf
  82 pop %rax
  83 lea 0x80(%rsp),%rsp
  c0 call 0x0000000000001000
  c5 test %rcx,%rcx
  c8 jne 0x000000000000102E
  ce jmp 0x000000000000107C
