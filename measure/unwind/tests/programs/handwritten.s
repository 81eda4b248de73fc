# What compilers do not write, but assembly does: each function with one peculiarity of its unwind entry.
    .text
    .globl by_expression, in_a_signal, with_arguments, far_away, below

# The frame address stored on the stack (OpenSSL): DW_CFA_def_cfa_expression: breg7 +8; deref; plus_uconst 8.
    .type by_expression, @function
by_expression:
    .cfi_startproc
    movq %rsp, %rax
    .cfi_def_cfa_register %rax
    pushq %rbx
    .cfi_offset %rbx, -16
    andq $-64, %rsp
    subq $64, %rsp
    movq %rax, 8(%rsp)
    .cfi_escape 0x0f, 5, 0x77, 8, 0x06, 0x23, 8
    nop
    .cfi_remember_state
    movq 8(%rsp), %rax
    .cfi_def_cfa %rax, 8
    nop
    .cfi_restore_state
    nop
    nop
    nop
    movq 8(%rsp), %rax
    movq -8(%rax), %rbx
    .cfi_restore %rbx
    leaq (%rax), %rsp
    .cfi_def_cfa %rsp, 8
    ret
    .cfi_endproc
    .size by_expression, . - by_expression

    .type in_a_signal, @function
in_a_signal:
    .cfi_startproc
    .cfi_signal_frame
    nop
    nop
    ret
    .cfi_endproc
    .size in_a_signal, . - in_a_signal

# DW_CFA_GNU_args_size, DW_CFA_val_offset, DW_CFA_register, undefined and same values, a rule by an expression: breg6 -8.
    .type with_arguments, @function
with_arguments:
    .cfi_startproc
    pushq $1
    .cfi_adjust_cfa_offset 8
    .cfi_escape 0x2e, 8
    nop
    .cfi_register %rbx, %r11
    .cfi_undefined %r12
    .cfi_same_value %r13
    .cfi_val_offset %r14, -16
    .cfi_escape 0x10, 15, 2, 0x76, 0x78
    nop
    popq %rax
    .cfi_adjust_cfa_offset -8
    .cfi_escape 0x2e, 0
    .cfi_restore %r12
    ret
    .cfi_endproc
    .size with_arguments, . - with_arguments

# Advances of two and of four bytes.
    .type far_away, @function
far_away:
    .cfi_startproc
    pushq %rbp
    .cfi_def_cfa_offset 16
    .rept 300
    nop
    .endr
    popq %rbp
    .cfi_def_cfa_offset 8
    .rept 7000
    movabsq $0, %rax
    .endr
    pushq %rbp
    .cfi_def_cfa_offset 16
    ret
    .cfi_endproc
    .size far_away, . - far_away

# The frame below the stack pointer: an offset that is negative.
    .type below, @function
below:
    .cfi_startproc
    leaq 64(%rsp), %rsp
    .cfi_def_cfa_offset -56
    nop
    nop
    nop
    leaq -64(%rsp), %rsp
    .cfi_def_cfa_offset 8
    ret
    .cfi_endproc
    .size below, . - below

# A CIE for functions with exception tables, and an entry that has none: zero, which is not relative to anything.
    .type without_table, @function
without_table:
    nop
    ret
without_table_end:
    .size without_table, . - without_table
    .type routine, @function
routine:
    ret
    .size routine, . - routine
    .section .eh_frame, "a", @unwind
cie:
    .long cie_end - cie - 4, 0
    .byte 1
    .asciz "zPLR"
    .byte 1, 0x78, 16, 7, 0x1b
    .long routine - .
    .byte 0x1b, 0x1b
    .byte 0x0c, 7, 8, 0x90, 1
    .balign 8
cie_end:
    .long fde_end - fde
fde:
    .long fde - cie
    .long without_table - ., without_table_end - without_table
    .byte 4
    .long 0
    .balign 8
fde_end:
    .section .note.GNU-stack, "", @progbits
