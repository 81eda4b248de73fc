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
  40 mov $0x10,%edx
  45 xadd %rdx,(%rcx)
  49 rorx $0x14,%rdx,%rax
  4f lea 0x21(%rsp,%rax,2),%eax
  56 push %rax
  57 and $0xFFFF0,%edx
  5d add %rdx,%rcx
  60 rdtsc
  62 movq $0x28,0x1008(%rcx)
  6d mov %eax,0x1000(%rcx)
  73 mov %edx,0x1004(%rcx)
  79 pop %rax
  7a mov %eax,0x100C(%rcx)
  80 pop %rdx
  81 pop %rcx
  82 pop %rax
  83 add $0x7F,%al
  85 sahf
  86 pop %rax
  c0 call 0x0000000000001000
  c5 test %rcx,%rcx
  c8 jne 0x0000000000001040
  ce jmp 0x0000000000001080
  d3 incq %gs:0x28
  dc pop %rdx
  dd pop %rcx
  de pop %rax
  df add $0x7F,%al
  e1 sahf
  e2 pop %rax
