/* Calls through pointers by every kind of operand. What a caller may hand to a callee, or get back, is in all registers,
   flags and stack words: the callee checks the former, the caller the latter. */
    .intel_syntax noprefix
    .text

    .macro CANARY reg, n
    movabs \reg, 0x1111111111111111 * \n
    .endm
    .macro SAME reg, n
    push rax
    movabs rax, 0x1111111111111111 * \n
    cmp \reg, rax
    pop rax
    jne failed
    .endm

    .p2align 4
failed:
    ud2

/* Of a callee: its number is counted. rax, r11 and whatever held the pointer are its own. */
    .macro CALLEE name, n
    .globl \name
    .type \name, @function
    .p2align 4
\name:
    .cfi_startproc
    endbr64
    pushf
    push rbx
    lea rbx, counts[rip]
    inc qword ptr [rbx + 8 * \n]
    pop rbx
    SAME rcx, 3
    SAME rdx, 4
    SAME rsi, 5
    SAME rdi, 6
    SAME r8, 7
    SAME r9, 8
    push rax
    movq rax, xmm0
    cmp rax, 77
    pop rax
    jne failed
    /* A stack argument, above the return address and the flags. */
    cmp qword ptr [rsp + 16], 99
    jne failed
    popf
    jnc failed
    jno failed
    CANARY rax, 9
    CANARY rcx, 10
    CANARY rdx, 11
    CANARY rsi, 12
    CANARY rdi, 13
    CANARY r8, 14
    CANARY r9, 15
    mov r10d, 88
    movq xmm0, r10
    CANARY r10, 1
    CANARY r11, 2
    /* Carry, and no overflow. */
    push rax
    mov al, 0x40
    add al, 0x3f
    stc
    pop rax
    ret
    .cfi_endproc
    .size \name, . - \name
    .endm

    CALLEE by_register, 0
    CALLEE by_memory, 1
    CALLEE by_table, 2
    CALLEE by_stack, 3
    CALLEE by_symbol, 4
    CALLEE by_thread, 5

/* Everything is set before and checked behind one call. */
    .macro AROUND call:vararg
    push 99
    .cfi_adjust_cfa_offset 8
    mov r11d, 77
    movq xmm0, r11
    CANARY rcx, 3
    CANARY rdx, 4
    CANARY rsi, 5
    CANARY rdi, 6
    CANARY r8, 7
    CANARY r9, 8
    /* Carry and overflow. */
    push rax
    mov al, 0x80
    add al, 0x80
    pop rax
    \call
    jnc failed
    jo failed
    SAME rax, 9
    SAME rcx, 10
    SAME rdx, 11
    SAME rsi, 12
    SAME rdi, 13
    SAME r8, 14
    SAME r9, 15
    SAME r10, 1
    SAME r11, 2
    movq rax, xmm0
    cmp rax, 88
    jne failed
    add rsp, 8
    .cfi_adjust_cfa_offset -8
    .endm

    .globl operands
    .type operands, @function
    .p2align 4
operands:
    .cfi_startproc
    endbr64
    push rbp
    .cfi_adjust_cfa_offset 8
    .cfi_offset rbp, -16
    push rbx
    .cfi_adjust_cfa_offset 8
    .cfi_offset rbx, -24
    push r12
    .cfi_adjust_cfa_offset 8
    .cfi_offset r12, -32
    sub rsp, 512
    .cfi_adjust_cfa_offset 512
    lea rbx, table[rip]
    lea rax, by_stack[rip]
    mov [rsp + 24], rax
    mov [rsp + 408], rax

    lea rax, by_register[rip]
    AROUND call rax
    lea r10, by_register[rip]
    AROUND call r10
    lea r12, by_register[rip]
    AROUND call r12
    lea rbp, by_register[rip]
    AROUND notrack call rbp
    AROUND call [rbx + 8]
    lea r12, [rbx - 0x1000]
    AROUND call [r12 + 0x1008]
    mov eax, 2
    AROUND call [rbx + rax * 8]
    mov r10d, 1
    AROUND call [rbx + r10 * 8 + 8]
    lea r10, [rbx - 32]
    mov r12d, 6
    AROUND call [r10 + r12 * 8]
    /* The argument is pushed in between. */
    AROUND call [rsp + 32]
    mov eax, 48
    AROUND call [rsp + rax * 8 + 32]
    AROUND call by_symbol_pointer[rip]
    AROUND call fs:thread_pointer@tpoff

    add rsp, 512
    .cfi_adjust_cfa_offset -512
    pop r12
    .cfi_adjust_cfa_offset -8
    pop rbx
    .cfi_adjust_cfa_offset -8
    pop rbp
    .cfi_adjust_cfa_offset -8
    ret
    .cfi_endproc
    .size operands, . - operands

    .data
    .p2align 3
table:
    .quad by_register, by_memory, by_table
by_symbol_pointer:
    .quad by_symbol
    .globl counts
counts:
    .fill 6, 8, 0

    .section .tdata, "awT", @progbits
    .p2align 3
thread_pointer:
    .quad by_thread
    .section .note.GNU-stack, "", @progbits
