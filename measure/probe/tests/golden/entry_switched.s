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
  1a jmp 0x0000000000001093
  1f mov %fs:0,%rcx
  28 cmp %gs:0,%rcx
  31 jne 0x0000000000001080
  37 mov %gs:8,%rcx
  40 mov $0x10,%edx
  45 xadd %rdx,(%rcx)
  49 rorx $0x14,%rdx,%rax
  4f lea 0x21(%rsp,%rax,2),%eax
  53 push %rax
  54 and $0xFFFF0,%edx
  5a add %rdx,%rcx
  5d rdtsc
  5f movq $0x28,0x48(%rcx)
  67 mov %eax,0x40(%rcx)
  6a mov %edx,0x44(%rcx)
  6d pop %rax
  6e mov %eax,0x4C(%rcx)
  71 pop %rdx
  72 pop %rcx
  73 pop %rax
  74 add $0x7F,%al
  76 sahf
  77 pop %rax
  80 call 0x0000000000001000
  85 test %rcx,%rcx
  88 jne 0x0000000000001040
  8e jmp 0x0000000000001071
  93 incq %gs:0x28
  9c pop %rdx
  9d pop %rcx
  9e pop %rax
  9f add $0x7F,%al
  a1 sahf
  a2 pop %rax
