// Too short for a jump, and one that is jumped into where the jump would be.
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
	.section .note.GNU-stack,"",@progbits
