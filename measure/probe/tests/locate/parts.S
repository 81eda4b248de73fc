/* What an unwind table without names leaves open: functions, and parts of them. */
.macro ENTRY name
  .type \name, @function
\name:
  .cfi_startproc
.endm
.macro END name
  .cfi_endproc
  .size \name, . - \name
.endm

  .section .text.unlikely, "ax", @progbits
/* As the compiler leaves it: entered without a frame, jumps back. */
ENTRY leaf.cold
  add $3, %rax
  jmp .Lleaf_back
END leaf.cold
/* Entered only past its first instruction, and never comes back. */
ENTRY pointed.cold
  nop
.Lpointed_cold:
  ud2
  jmp .Lpointed_back
END pointed.cold
/* Without a frame, but a register is saved already. */
ENTRY saved.cold
  .cfi_offset %rbx, -16
  ud2
END saved.cold
/* Two functions jump into its middle. */
ENTRY shared_part
  nop
.Lshared_middle:
  ret
END shared_part
/* Called, whatever its name says: LLVM's hot-cold splitting. */
ENTRY leaf.cold.1
  ret
END leaf.cold.1
/* A part under a name that says nothing. */
ENTRY frame_in_place
  .cfi_def_cfa_offset 24
  ud2
END frame_in_place

  .text
  .globl first
ENTRY first
  call leaf
  call leaf.cold.1
  test %eax, %eax
  jz tail_called_twice
  jmp .Lshared_middle
END first
  .globl second
ENTRY second
  call leaf
  test %eax, %eax
  jz frame_in_place
  js tail_called_twice
  jp tail_called_once
  jmp .Lshared_middle
END second
ENTRY leaf
  mov %rdi, -8(%rsp)
  test %edi, %edi
  js leaf.cold
.Lleaf_back:
  mov -8(%rsp), %rax
  ret
END leaf
  .p2align 4
ENTRY pointed
  test %edi, %edi
  js .Lpointed_cold
.Lpointed_back:
  jz saved.cold
  ret
END pointed
ENTRY tail_called_twice
  lea 1(%rdi), %rax
  ret
END tail_called_twice
ENTRY tail_called_once
  lea 2(%rdi), %rax
  jmp behind_it
END tail_called_once
ENTRY behind_it
  lea 3(%rdi), %rax
  ret
END behind_it
  .data
  .quad pointed
  .section .note.GNU-stack, "", @progbits
