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
  4f lea 0x20(%rsp,%rax),%eax
  56 and $0xFFFF0,%edx
  5c movq $0,0x1000(%rcx,%rdx)
  68 mov %eax,0x100C(%rcx,%rdx)
  6f movl $0x28,0x1008(%rcx,%rdx)
  7a add %rdx,%rcx
  7d rdtsc
  7f shl $0x20,%rdx
  83 or %rdx,%rax
  86 mov %rax,0x1000(%rcx)
  8d pop %rdx
  8e pop %rcx
  8f pop %rax
  90 add $0x7F,%al
  92 sahf
  93 pop %rax
  c0 call 0x0000000000001000
  c5 test %rcx,%rcx
  c8 jne 0x0000000000001040
  ce jmp 0x000000000000108D
  d3 incq %gs:0x28
  dc pop %rdx
  dd pop %rcx
  de pop %rax
  df add $0x7F,%al
  e1 sahf
  e2 pop %rax
