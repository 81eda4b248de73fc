// What has no room for a jump.
	.text
	.globl one
	.type one, @function
one:	mov %edi, %eax
	ret
	.size one, .-one
	.globl two
	.type two, @function
two:	lea 1(%rdi), %eax
	ret
	.size two, .-two
	.globl looped
	.type looped, @function
looped:	xor %eax, %eax
1:	inc %eax
	dec %edi
	jnz 1b
	ret
	.size looped, .-looped
	.globl unused
	.type unused, @function
unused:	ret
	.size unused, .-unused
	.globl three
	.type three, @function
three:	lea 3(%rdi), %eax
	ret
	.size three, .-three
	.globl four
	.type four, @function
four:	lea 4(%rdi), %eax
	ret
	.size four, .-four
# Its loop leads into its first bytes: it is refused, and with it what it calls.
	.globl entered
	.type entered, @function
entered:
	.cfi_startproc
	push %rbx
	.cfi_adjust_cfa_offset 8
	.cfi_offset %rbx, -16
1:	mov %edi, %ebx
	call three
	mov %ebx, %edi
	call four
	lea -1(%rbx), %edi
	test %edi, %edi
	jg 1b
	pop %rbx
	.cfi_adjust_cfa_offset -8
	ret
	.cfi_endproc
	.size entered, .-entered
	.section .note.GNU-stack,"",@progbits
