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
  3c push %rax
  3d and $0xFFFF0,%edx
  43 add %rdx,%rcx
  46 rdtsc
  48 movq $0x29,0x48(%rcx)
  50 mov %eax,0x40(%rcx)
  53 mov %edx,0x44(%rcx)
  56 pop %rax
  57 mov %eax,0x4C(%rcx)
  5a pop %rdx
  5b pop %rcx
  5c pop %rax
  5d add $0x7F,%al
  5f sahf
  60 pop %rax
  80 call 0x0000000000001000
  85 test %rcx,%rcx
  88 jne 0x0000000000001029
  8e jmp 0x000000000000105A
