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
  38 lea 0x21(%rsp,%rax,2),%eax
  3f push %rax
  40 and $0xFFFF0,%edx
  46 add %rdx,%rcx
  49 rdtsc
  4b movq $0x29,0x1008(%rcx)
  56 mov %eax,0x1000(%rcx)
  5c mov %edx,0x1004(%rcx)
  62 pop %rax
  63 mov %eax,0x100C(%rcx)
  69 pop %rdx
  6a pop %rcx
  6b pop %rax
  6c add $0x7F,%al
  6e sahf
  6f pop %rax
  80 call 0x0000000000001000
  85 test %rcx,%rcx
  88 jne 0x0000000000001029
  8e jmp 0x0000000000001069
