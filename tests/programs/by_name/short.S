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
	.section .note.GNU-stack,"",@progbits
