// What cannot be copied.
	.text
	// Its gs base would be that of probes.
	.globl odd
	.type odd, @function
odd:	lea 5(%rdi), %eax
	test %edi, %edi
	jns 1f
	mov %gs:0, %eax
1:	ret
	.size odd, .-odd
	.globl away
	.type away, @function
away:	lea 6(%rdi), %eax
	ret
	.size away, .-away
	.section .note.GNU-stack,"",@progbits
