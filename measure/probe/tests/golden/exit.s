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
  29 test %rcx,%rcx
  2c je 0x0000000000001063
  32 mov $0x10,%edx
  37 xadd %rdx,(%rcx)
  3b rorx $0x14,%rdx,%rax
  41 lea 0x21(%rsp,%rax,2),%eax
  45 push %rax
  46 and $0xFFFF0,%edx
  4c add %rdx,%rcx
  4f rdtsc
  51 movq $0x29,0x48(%rcx)
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
  80 call 0x0000000000001000
  85 test %rcx,%rcx
  88 jne 0x0000000000001032
  8e jmp 0x0000000000001063
