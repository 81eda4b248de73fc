   0 push %rax
   1 push %rdx
   2 push %rbx
   3 rdgsbase %rdx
   8 movabs $0x7F0000001000,%rax
  12 sub %rax,%rdx
  15 cmp $0x1000,%rdx
  1c jae 0x00000000000010CF
  22 mov %gs:0x10,%rbx
  2b test %rbx,%rbx
  2e je 0x00000000000010C8
  34 mov 0x40(%rbx),%rax
  3b cmp 0x80(%rbx),%rax
  42 jae 0x00000000000010C0
  48 mov %eax,%ecx
  4a and $0x3FF,%ecx
  50 mov 0x1000(%rbx,%rcx,4),%ecx
  57 lea 1(%rax),%rdx
  5b lock cmpxchg %rdx,0x40(%rbx)
  64 jne 0x0000000000001034
  6a mov %rcx,%rdx
  6d shl $6,%rdx
  71 movabs $0x7F0000001000,%rax
  7b add %rax,%rdx
  7e imul $0x101000,%rcx
  85 lea 0x2000(%rbx,%rcx),%rcx
  8d mov %fs:0x2D0,%eax
  95 mov %eax,0x48(%rcx)
  9b mov %fs:0,%rax
  a4 mov %rax,0x40(%rcx)
  ab mov %rbx,0x10(%rdx)
  af mov %rcx,8(%rdx)
  b3 mov %rax,(%rdx)
  b7 wrgsbase %rdx
  bc pop %rbx
  bd pop %rdx
  be pop %rax
  bf ret
  c0 lock incq 0xC0(%rbx)
  c8 xor %ecx,%ecx
  ca jmp 0x00000000000010BC
  cf movabs $0x7F0000100000,%rbx
  d9 lock incq 0xC8(%rbx)
  e1 jmp 0x00000000000010C8
