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
  2e mov $0x10,%edx
  33 xadd %rdx,(%rcx)
  37 mov %rdx,%rax
  3a shr $0x14,%rax
  3e lea 0xA1(%rsp,%rax,2),%eax
  45 push %rax
  46 and $0xFFFF0,%edx
  4c add %rdx,%rcx
  4f rdtsc
  51 movq $0x2A,0x48(%rcx)
  59 mov %eax,0x40(%rcx)
  5c mov %edx,0x44(%rcx)
  5f pop %rax
  60 mov %eax,0x4C(%rcx)
  63 pop %rdx
  64 pop %rcx
  65 pop %rax
  66 add $0x7F,%al
  68 sahf
  69 pop %rax
  6a lea 0x80(%rsp),%rsp
  80 call 0x0000000000001000
  85 test %rcx,%rcx
  88 jne 0x000000000000102E
  8e jmp 0x0000000000001063
