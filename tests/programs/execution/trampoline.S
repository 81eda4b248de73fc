# call_body(function, const struct registers *in, struct registers *out): loads every register and
# the flags, calls, and stores every register and the flags: all that a function can take or leave.
        .text
        .globl call_body
        .type call_body, @function
call_body:
        push %rbx
        push %rbp
        push %r12
        push %r13
        push %r14
        push %r15
        sub $8, %rsp
        mov %rdi, function(%rip)
        mov %rdx, out(%rip)
        mov %rsp, stack(%rip)
        mov %rsi, %rax
        .irp n, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15
        movups 128+16*\n(%rax), %xmm\n
        .endr
        pushq 120(%rax)
        popf
        mov 8(%rax), %rcx
        mov 16(%rax), %rdx
        mov 24(%rax), %rbx
        mov 32(%rax), %rbp
        mov 40(%rax), %rsi
        mov 48(%rax), %rdi
        mov 56(%rax), %r8
        mov 64(%rax), %r9
        mov 72(%rax), %r10
        mov 80(%rax), %r11
        mov 88(%rax), %r12
        mov 96(%rax), %r13
        mov 104(%rax), %r14
        mov 112(%rax), %r15
        mov (%rax), %rax
        call *function(%rip)
        push %rax
        mov out(%rip), %rax
        popq (%rax)
        pushf
        popq 120(%rax)
        mov %rcx, 8(%rax)
        mov %rdx, 16(%rax)
        mov %rbx, 24(%rax)
        mov %rbp, 32(%rax)
        mov %rsi, 40(%rax)
        mov %rdi, 48(%rax)
        mov %r8, 56(%rax)
        mov %r9, 64(%rax)
        mov %r10, 72(%rax)
        mov %r11, 80(%rax)
        mov %r12, 88(%rax)
        mov %r13, 96(%rax)
        mov %r14, 104(%rax)
        mov %r15, 112(%rax)
        .irp n, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15
        movups %xmm\n, 128+16*\n(%rax)
        .endr
        cld
        # How far the stack pointer is off.
        mov %rsp, %rcx
        sub stack(%rip), %rcx
        mov %rcx, 384(%rax)
        mov stack(%rip), %rsp
        add $8, %rsp
        pop %r15
        pop %r14
        pop %r13
        pop %r12
        pop %rbp
        pop %rbx
        ret
        .size call_body, . - call_body

        .local function
        .comm function, 8, 8
        .local out
        .comm out, 8, 8
        .local stack
        .comm stack, 8, 8
        .section .note.GNU-stack, "", @progbits
