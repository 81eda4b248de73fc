/* Functions whose machine code is the point: each shape is written out, so that no compiler or
 * level of optimisation changes it. Symbols carry their sizes; padding stays as the assembler
 * leaves it. */

.macro FUNCTION name
  .globl \name
  .type \name, @function
\name:
  .cfi_startproc
.endm

.macro END name
  .cfi_endproc
  .size \name, . - \name
.endm

  .text
  .p2align 4
FUNCTION one_byte
  ret
END one_byte

/* No padding: the next function begins where a jump would have to go. */
  .p2align 4
FUNCTION one_byte_tight
  ret
END one_byte_tight
FUNCTION behind_one_byte
  lea 3(%rdi), %rax
  ret
END behind_one_byte

  .p2align 4
FUNCTION three_bytes
  mov %edi, %eax
  ret
END three_bytes

/* Sum of 1…rdi onto rsi: each round branches to the entry. */
  .p2align 4
FUNCTION loop_to_entry
  add %rdi, %rsi
  dec %rdi
  jnz loop_to_entry
  mov %rsi, %rax
  ret
END loop_to_entry

/* The same, back to the third byte. */
  .p2align 4
FUNCTION loop_to_byte_2
  xor %eax, %eax
1:
  add %rdi, %rax
  dec %rdi
  jnz 1b
  ret
END loop_to_byte_2

/* Entered by another function behind its first instruction. */
  .p2align 4
FUNCTION entered_in_the_middle
  mov %rdi, %rax
.Lmiddle:
  add $7, %rax
  ret
END entered_in_the_middle

  .p2align 4
FUNCTION enters_in_the_middle
  lea (%rdi,%rdi), %rax
  jmp .Lmiddle
END enters_in_the_middle

/* The static chain of nested functions comes in r10. */
  .p2align 4
FUNCTION static_chain
  mov (%r10), %rax
  add %rdi, %rax
  ret
END static_chain

  .p2align 4
FUNCTION rip_relative_first
  mov shapes_word(%rip), %rax
  add %rdi, %rax
  ret
END rip_relative_first

  .p2align 4
FUNCTION call_first
  call three_bytes
  inc %eax
  ret
END call_first

/* The call's return address is the entry's third byte. */
  .p2align 4
FUNCTION short_call_first
  call *%rsi
  add $5, %eax
  ret
END short_call_first

/* The carry flag is its argument. */
  .p2align 4
FUNCTION jcc_first
  jc 1f
  mov $1, %eax
  ret
1:
  mov $2, %eax
  ret
END jcc_first

  .p2align 4
FUNCTION tail_direct
  inc %rdi
  jmp three_bytes
END tail_direct

  .p2align 4
FUNCTION tail_conditional
  test %rdi, %rdi
  jz three_bytes
  lea 100(%rdi), %rax
  ret
END tail_conditional

  .p2align 4
FUNCTION tail_register
  inc %rdi
  jmp *%rsi
END tail_register

  .p2align 4
FUNCTION tail_memory
  inc %rdi
  jmp *8(%rsi)
END tail_memory

  .p2align 4
FUNCTION tail_rip_memory
  inc %rdi
  jmp *shapes_slot(%rip)
END tail_rip_memory

  .p2align 4
FUNCTION tail_plt
  jmp labs@PLT
END tail_plt

  .p2align 4
FUNCTION tail_got
  jmp *labs@GOTPCREL(%rip)
END tail_got

  .p2align 4
FUNCTION table_of_offsets
  cmp $4, %rdi
  ja 9f
  lea .Loffsets(%rip), %rdx
  movslq (%rdx,%rdi,4), %rax
  add %rdx, %rax
  jmp *%rax
1: mov $11, %eax
  ret
2: mov $22, %eax
  ret
3: mov $33, %eax
  ret
4: mov $44, %eax
  ret
5: mov $55, %eax
  ret
9: mov $99, %eax
  ret
  .section .rodata
  .p2align 2
.Loffsets:
  .long 1b - .Loffsets, 2b - .Loffsets, 3b - .Loffsets, 4b - .Loffsets, 5b - .Loffsets
  .text
END table_of_offsets

  .p2align 4
FUNCTION table_of_addresses
  cmp $2, %rdi
  ja 9f
  lea .Laddresses(%rip), %rdx
  jmp *(%rdx,%rdi,8)
1: mov $111, %eax
  ret
2: mov $222, %eax
  ret
3: mov $333, %eax
  ret
9: mov $999, %eax
  ret
  .section .data.rel.ro, "aw"
  .p2align 3
.Laddresses:
  .quad 1b, 2b, 3b
  .text
END table_of_addresses

/* CF is the result: rdi < rsi. */
  .p2align 4
FUNCTION flags_result
  cmp %rsi, %rdi
  ret
END flags_result

/* Changes rax and nothing else; its caller relies on that for every other register. */
  .p2align 4
FUNCTION ipa_callee
  lea 1(%rdi), %rax
  ret
END ipa_callee

  .p2align 4
FUNCTION ipa_caller
  mov $0x1111, %ecx
  mov $0x2222, %edx
  mov $0x3333, %esi
  mov $0x4444, %r8d
  mov $0x5555, %r9d
  mov $0x6666, %r10d
  mov $0x7777, %r11d
  movq %rcx, %xmm0
  movq %rdx, %xmm15
  call ipa_callee
  sub $0x1111, %rcx
  sub $0x2222, %rdx
  sub $0x3333, %rsi
  sub $0x4444, %r8
  sub $0x5555, %r9
  sub $0x6666, %r10
  sub $0x7777, %r11
  or %rcx, %rdx
  or %rsi, %rdx
  or %r8, %rdx
  or %r9, %rdx
  or %r10, %rdx
  or %r11, %rdx
  movq %xmm0, %rcx
  sub $0x1111, %rcx
  or %rcx, %rdx
  movq %xmm15, %rcx
  sub $0x2222, %rcx
  or %rcx, %rdx
  neg %rdx
  sbb %rcx, %rcx
  or %rcx, %rax
  ret
END ipa_caller

  .p2align 4
FUNCTION red_zone
  mov %rdi, -8(%rsp)
  lea 1(%rdi), %rax
  mov %rax, -64(%rsp)
  lea 2(%rdi), %rax
  mov %rax, -128(%rsp)
  mov -8(%rsp), %rax
  add -64(%rsp), %rax
  add -128(%rsp), %rax
  ret
END red_zone

/* Red zone live where both kinds of jump leave for the middle of another function: no tail calls,
 * though they look like them. */
  .p2align 4
FUNCTION red_zone_leaves
  mov %rdi, -8(%rsp)
  lea 1(%rdi), %rax
  mov %rax, -128(%rsp)
  test $1, %dil
  jnz .Lred_middle
  jmp .Lred_middle
END red_zone_leaves

  .p2align 4
FUNCTION red_zone_left_for
  mov %rdi, -8(%rsp)
  mov %rdi, -128(%rsp)
.Lred_middle:
  mov -8(%rsp), %rax
  add -128(%rsp), %rax
  ret
END red_zone_left_for

/* Red zone live across a computed jump. */
  .p2align 4
FUNCTION red_zone_table
  mov %rsi, -8(%rsp)
  lea 1(%rsi), %rax
  mov %rax, -16(%rsp)
  lea 2(%rsi), %rax
  mov %rax, -120(%rsp)
  lea 3(%rsi), %rax
  mov %rax, -128(%rsp)
  and $1, %edi
  lea .Lred(%rip), %rdx
  movslq (%rdx,%rdi,4), %rax
  add %rdx, %rax
  jmp *%rax
1: xor %eax, %eax
  jmp 3f
2: mov $1000, %eax
3: add -8(%rsp), %rax
  add -16(%rsp), %rax
  add -120(%rsp), %rax
  add -128(%rsp), %rax
  ret
  .section .rodata
  .p2align 2
.Lred:
  .long 1b - .Lred, 2b - .Lred
  .text
END red_zone_table

/* The same at an entry: a part that has a name of its own. */
  .p2align 4
FUNCTION red_zone_jumps
  mov %rdi, -8(%rsp)
  lea 1(%rdi), %rax
  mov %rax, -128(%rsp)
  test $1, %dil
  jnz red_zone_entered
  jmp red_zone_entered
END red_zone_jumps

  .p2align 4
FUNCTION red_zone_entered
  mov -8(%rsp), %rax
  add -128(%rsp), %rax
  ret
END red_zone_entered

/* A leaf with a part elsewhere, and the red zone live across. The part leaves in two ways that are
 * not always taken. */
  .p2align 4
FUNCTION split_leaf
  mov %rdi, -8(%rsp)
  mov %rdi, -128(%rsp)
  test %rdi, %rdi
  js split_leaf.cold
.Lsplit_back:
  mov -8(%rsp), %rax
  add -128(%rsp), %rax
  ret
END split_leaf
  .section .text.unlikely, "ax", @progbits
  .type split_leaf.cold, @function
split_leaf.cold:
  .cfi_startproc
  cmp $-100, %rdi
  jl three_bytes
  lea 10(%rdi), %rcx
  jrcxz beside_cold
  jmp .Lsplit_back
END split_leaf.cold
FUNCTION beside_cold
  lea 1000(%rdi), %rax
  ret
END beside_cold
  .text

/* A computed jump to its own entry: each is a call. */
  .p2align 4
FUNCTION table_to_entry
  lea 7(%rsi), %rsi
  dec %rdi
  setg %al
  movzbl %al, %eax
  lea .Lagain(%rip), %rdx
  movslq (%rdx,%rax,4), %rax
  add %rdx, %rax
  jmp *%rax
1: mov %rsi, %rax
  ret
  .section .rodata
  .p2align 2
.Lagain:
  .long 1b - .Lagain, table_to_entry - .Lagain
  .text
END table_to_entry

/* Flags live across a computed jump: CF in, through the table, out. */
  .p2align 4
FUNCTION flags_across_table
  lea .Lflags(%rip), %rdx
  movslq (%rdx,%rdi,4), %rax
  lea (%rax,%rdx), %rax
  jmp *%rax
1: mov $10, %eax
  adc $0, %eax
  ret
2: mov $20, %eax
  adc $0, %eax
  ret
  .section .rodata
  .p2align 2
.Lflags:
  .long 1b - .Lflags, 2b - .Lflags
  .text
END flags_across_table

  .p2align 4
FUNCTION loops_and_jrcxz
  xor %eax, %eax
  mov %rdi, %rcx
  jrcxz 2f
1: add $3, %rax
  loop 1b
2: ret
END loops_and_jrcxz

/* Takes 16 bytes of stack arguments with it. */
  .p2align 4
FUNCTION ret_imm16
  mov 8(%rsp), %rax
  add 16(%rsp), %rax
  ret $16
END ret_imm16

  .p2align 4
FUNCTION rep_ret
  lea 4(%rdi), %rax
  rep ret
END rep_ret

  .p2align 4
FUNCTION bnd_prefixed
  test %edi, %edi
  .byte 0xf2; jz 1f
  .byte 0xf2; call three_bytes
  add $1, %eax
1: add $6, %eax
  .byte 0xf2; ret
END bnd_prefixed

  .p2align 4
FUNCTION falls_through
  mov %rdi, %rax
  add $1, %rax
  mov %rax, %rdi
END falls_through
FUNCTION fallen_into
  lea 10(%rdi), %rax
  ret
END fallen_into

/* Data after the return, inside the symbol; 0x06 is no instruction. */
  .p2align 4
FUNCTION data_after_ret
  lea 1f(%rip), %rax
  mov (%rax,%rdi,4), %eax
  ret
1: .long 0x06060606, 0x06060607, 0x06060608
END data_after_ret

/* Points to where it lies, by a call: a copy would point to the copy. */
  .p2align 4
FUNCTION get_pc
  call 1f
1: pop %rax
  lea 1b(%rip), %rdx
  sub %rdx, %rax
  ret
END get_pc

/* Its own address, as a function pointer compares it. */
  .p2align 4
FUNCTION own_address
  lea own_address(%rip), %rax
  ret
END own_address

  .p2align 4
FUNCTION landing_pad
  endbr64
  lea 9(%rdi), %rax
  ret
END landing_pad

/* endbr64 and nothing that five bytes would fit on without the padding. */
  .p2align 4
FUNCTION landing_pad_short
  endbr64
  mov %edi, %eax
  ret
END landing_pad_short

  .p2align 4
FUNCTION calls_itself
  test %rdi, %rdi
  jz 1f
  push %rdi
  .cfi_adjust_cfa_offset 8
  dec %rdi
  call calls_itself
  pop %rdi
  .cfi_adjust_cfa_offset -8
  add %rdi, %rax
  ret
1: xor %eax, %eax
  ret
END calls_itself

/* Jumps to its own entry with another argument: a loop, not a call. */
  .p2align 4
FUNCTION jumps_to_itself
  test %rdi, %rdi
  jz 1f
  dec %rdi
  add $2, %rsi
  jmp jumps_to_itself
1: mov %rsi, %rax
  ret
END jumps_to_itself

  .p2align 4
FUNCTION raw_system_call
  mov $39, %eax
  syscall
  ret
END raw_system_call

  .p2align 4
FUNCTION string_instructions
  mov %rdi, %rcx
  mov %rsi, %rdi
  mov $0x5a, %eax
  rep stosb
  mov %rdi, %rax
  sub %rsi, %rax
  ret
END string_instructions

/* Flags through the stack, with a frame made and left by enter and leave. */
  .p2align 4
FUNCTION flags_and_frames
  enter $16, $0
  pushfq
  pop %rax
  cmp %rsi, %rdi
  pushfq
  pop %rax
  and $1, %eax
  leave
  ret
END flags_and_frames

/* From the outside gs belongs to whoever set its base: a function that reads through it. */
  .p2align 4
FUNCTION uses_gs
  mov %gs:(%rdi), %rax
  ret
END uses_gs

/* switch_stack(from, to, value): keeps the callee's registers and the stack pointer at *from, goes
 * on where `to` was left, and returns `value` there. */
  .p2align 4
FUNCTION switch_stack
  push %rbp
  push %rbx
  push %r12
  push %r13
  push %r14
  push %r15
  mov %rsp, (%rdi)
  mov %rsi, %rsp
  mov %rdx, %rax
  pop %r15
  pop %r14
  pop %r13
  pop %r12
  pop %rbx
  pop %rbp
  ret
END switch_stack

/* More than 64 KiB, with branches over the whole of it. */
  .p2align 4
FUNCTION very_large
  lea (%rdi), %eax
  mov %eax, %edx
  add %edx, %edx
1:
  .rept 24000
  add $1, %eax
  .endr
  cmp $60000, %eax
  jb 1b
  ret
END very_large

/* The unwind entry ends before the code does, as clone3's in glibc. */
  .p2align 4
FUNCTION unwind_entry_too_short
  test %rdi, %rdi
  jz 1f
  lea 1(%rdi), %rax
  .cfi_endproc
  add $10, %rax
  ret
1: mov $5, %eax
  ret
  .size unwind_entry_too_short, . - unwind_entry_too_short

/* What C has no words for: how the shapes above are called. */

/* carry_in(function, carry, argument): calls with CF = carry. */
  .p2align 4
FUNCTION carry_in
  push %rbx
  mov %rdi, %rbx
  mov %rdx, %rdi
  bt $0, %rsi
  call *%rbx
  pop %rbx
  ret
END carry_in

/* carry_out(function, a, b): CF of function(a, b). */
  .p2align 4
FUNCTION carry_out
  push %rbx
  mov %rdi, %rbx
  mov %rsi, %rdi
  mov %rdx, %rsi
  call *%rbx
  setc %al
  movzbl %al, %eax
  pop %rbx
  ret
END carry_out

/* chain_in(argument, chain) */
  .p2align 4
FUNCTION chain_in
  push %rbx
  mov %rsi, %r10
  call static_chain
  pop %rbx
  ret
END chain_in

/* push_16(a, b): a wrong stack pointer afterwards is returned in place of the sum. */
  .p2align 4
FUNCTION push_16
  push %rbx
  mov %rsp, %rbx
  push %rsi
  push %rdi
  call ret_imm16
  cmp %rsp, %rbx
  je 1f
  mov $-1, %rax
  mov %rbx, %rsp
1: pop %rbx
  ret
END push_16

  .section .data.rel, "aw"
  .p2align 3
shapes_slot: .quad three_bytes
  .section .rodata
  .p2align 3
shapes_word: .quad 0x123456789
  .section .note.GNU-stack, "", @progbits
