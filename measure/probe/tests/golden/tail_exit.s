   0 lea -0x80(%rsp),%rsp
   5 push %rax
   6 lahf
   7 seto %al
   a push %rax
   b push %rcx
   c push %rdx
   d mov %fs:0,%rcx
  16 cmp %gs:0,%rcx
  1f jne 0x0000000000001080
  25 mov %gs:8,%rcx
  2e test %rcx,%rcx
  31 je 0x000000000000106C
  37 mov $0x10,%edx
  3c xadd %rdx,(%rcx)
  40 mov %rdx,%rax
  43 shr $0x14,%rax
  47 lea 0xA1(%rsp,%rax,2),%eax
  4e push %rax
  4f and $0xFFFF0,%edx
  55 add %rdx,%rcx
  58 rdtsc
  5a movq $0x2A,0x48(%rcx)
  62 mov %eax,0x40(%rcx)
  65 mov %edx,0x44(%rcx)
  68 pop %rax
  69 mov %eax,0x4C(%rcx)
  6c pop %rdx
  6d pop %rcx
  6e pop %rax
  6f add $0x7F,%al
  71 sahf
  72 pop %rax
  73 lea 0x80(%rsp),%rsp
  80 call 0x0000000000001000
  85 test %rcx,%rcx
  88 jne 0x0000000000001037
  8e jmp 0x000000000000106C
