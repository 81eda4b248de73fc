   0 push %rax
   1 lahf
   2 seto %al
   5 push %rax
   6 push %rcx
   7 push %rdx
   8 mov %gs:0x18,%ecx
  10 lea -0x6F66C35A(%rcx),%ecx
  16 jrcxz 0x000000000000101A
  18 jmp 0x000000000000101F
  1a jmp 0x00000000000010D3
  1f mov %fs:0,%rcx
  28 cmp %gs:0,%rcx
  31 jne 0x00000000000010C0
  37 mov %gs:8,%rcx
  40 test %rcx,%rcx
  43 je 0x000000000000107A
  49 mov $0x10,%edx
  4e xadd %rdx,(%rcx)
  52 rorx $0x14,%rdx,%rax
  58 lea 0x21(%rsp,%rax,2),%eax
  5c push %rax
  5d and $0xFFFF0,%edx
  63 add %rdx,%rcx
  66 rdtsc
  68 movq $0x28,0x48(%rcx)
  70 mov %eax,0x40(%rcx)
  73 mov %edx,0x44(%rcx)
  76 pop %rax
  77 mov %eax,0x4C(%rcx)
  7a pop %rdx
  7b pop %rcx
  7c pop %rax
  7d add $0x7F,%al
  7f sahf
  80 pop %rax
  c0 call 0x0000000000001000
  c5 test %rcx,%rcx
  c8 jne 0x0000000000001049
  ce jmp 0x000000000000107A
  d3 incq %gs:0x28
  dc pop %rdx
  dd pop %rcx
  de pop %rax
  df add $0x7F,%al
  e1 sahf
  e2 pop %rax
