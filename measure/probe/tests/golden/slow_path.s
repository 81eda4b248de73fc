   0 push %rax
   1 push %rdx
   2 push %rbx
   3 rdgsbase %rdx
   8 movabs $0x7F0000001000,%rax
  12 sub %rax,%rdx
  15 cmp $0x1000,%rdx
  1c jae 0x00000000000010DB
  22 mov %gs:0x10,%rbx
  2b test %rbx,%rbx
  2e je 0x00000000000010D4
  34 mov 0x40(%rbx),%rax
  3b cmp 0x80(%rbx),%rax
  42 jae 0x00000000000010CC
  48 mov %eax,%ecx
  4a and $0x3FF,%ecx
  50 mov 0x1000(%rbx,%rcx,4),%ecx
  57 lea 1(%rax),%rdx
  5b lock cmpxchg %rdx,0x40(%rbx)
  64 jne 0x0000000000001034
  6a cmp $0x3F,%ecx
  70 jae 0x00000000000010CC
  76 mov %rcx,%rdx
  79 shl $6,%rdx
  7d movabs $0x7F0000001000,%rax
  87 add %rax,%rdx
  8a imul $0x101000,%rcx
  91 lea 0x2FC0(%rbx,%rcx),%rcx
  99 mov %fs:0x2D0,%eax
  a1 mov %eax,0x10(%rcx)
  a7 mov %fs:0,%rax
  b0 mov %rax,8(%rcx)
  b7 mov %rbx,0x10(%rdx)
  bb mov %rcx,8(%rdx)
  bf mov %rax,(%rdx)
  c3 wrgsbase %rdx
  c8 pop %rbx
  c9 pop %rdx
  ca pop %rax
  cb ret
  cc lock incq 0xC0(%rbx)
  d4 xor %ecx,%ecx
  d6 jmp 0x00000000000010C8
  db movabs $0x7F0000100000,%rbx
  e5 lock incq 0xC8(%rbx)
  ed jmp 0x00000000000010D4
