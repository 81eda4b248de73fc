/* Functions for a verdict; nobody runs them. */
  .macro FUNCTION name, kind=@function
  .globl \name
  .type \name, \kind
  .p2align 4
\name:
  .endm
  .macro END name
  .size \name, . - \name
  .endm

  .text
FUNCTION ordinary
  lea 1(%rdi), %rax
  add %rsi, %rax
  ret
END ordinary

FUNCTION resolver, @gnu_indirect_function
  mov $0, %rax
  ret
END resolver

/* A name from the list, with the body of an ordinary function. */
FUNCTION vfork
  lea 1(%rdi), %rax
  add %rsi, %rax
  ret
END vfork

FUNCTION far_away
  lea . + 0x10000000(%rip), %rax
  ret
END far_away

FUNCTION restartable
  lea .Lsequence(%rip), %rax
  mov %rax, (%rdi)
.Lbegin:
  incq (%rsi)
.Lend:
  ret
END restartable

FUNCTION computed
  lea 1(%rdi), %rax
  add %rsi, %rdx
  jmp *%rdx
END computed

/* A load that a handler of faults knows: by a table, by a label, by a pointer, by other code. */
FUNCTION in_a_table
  xor %eax, %eax
.Lfault:
  mov (%rdi), %eax
  ret
END in_a_table
#ifdef BOLT
  /* What BOLT has replaced, and nobody reads. */
  .pushsection .bolt.org.eh_frame_hdr, "a"
#else
  .pushsection __fault_table, "a"
#endif
  .long .Lfault - .
  .popsection

FUNCTION labelled
  xor %eax, %eax
labelled_fault:
  mov (%rdi), %eax
  ret
END labelled

FUNCTION pointed_to
  xor %eax, %eax
.Lpointed:
  mov (%rdi), %eax
  ret
END pointed_to
  .pushsection .data.rel.ro, "aw"
  .quad .Lpointed
  .popsection

FUNCTION taken
  xor %eax, %eax
.Ltaken:
  mov (%rdi), %eax
  ret
END taken

FUNCTION takes
  lea .Ltaken(%rip), %rax
  cmp %rax, %rdi
  sete %al
  ret
END takes

/* What is known there faults not, or is where its own jump leads. */
FUNCTION label_of_no_access
  xor %eax, %eax
no_access:
  lea 1(%rdi), %rax
  ret
END label_of_no_access

FUNCTION jumps_through_a_table
  lea .Ltargets(%rip), %rax
  jmp *(%rax, %rdi, 8)
.Ltarget:
  mov (%rsi), %eax
  ret
END jumps_through_a_table
  .pushsection .data.rel.ro, "aw"
.Ltargets:
  .quad .Ltarget
  .popsection

/* With landing pads, as far as its unwind table says. */
FUNCTION catches
  .cfi_startproc
  .cfi_lsda 0x1b, .Llanding
  lea 1(%rdi), %rax
  add %rsi, %rax
  ret
  .cfi_endproc
END catches

  .section .gcc_except_table, "a"
.Llanding:
  .byte 0xff, 0xff, 1, 0

/* struct rseq_cs (linux/rseq.h) */
  .section __rseq_cs, "aw"
  .p2align 5
.Lsequence:
  .long 0, 0
  .quad .Lbegin, .Lend - .Lbegin, .Lend
  .section .note.GNU-stack, "", @progbits

/* V8's built-in functions: of a known length, or up to the end of the section. */
#ifdef V8
  .text
  .globl v8_Default_embedded_blob_code_
v8_Default_embedded_blob_code_:
FUNCTION Builtins_JSEntry
  lea 1(%rdi), %rax
  add %rsi, %rax
  ret
END Builtins_JSEntry
.Lblob_end:
FUNCTION behind_the_blob
  lea 1(%rdi), %rax
  add %rsi, %rax
  ret
END behind_the_blob
#if V8 > 1
  .section .rodata
FUNCTION v8_Default_embedded_blob_code_size_, @object
  .long .Lblob_end - v8_Default_embedded_blob_code_
END v8_Default_embedded_blob_code_size_
#endif
#endif

/* What tells code that walks its own stacks. */
#ifdef GO
  .section .gopclntab, "a"
  .quad 0
#endif
#ifdef OCAML
  .data
FUNCTION caml_frametable, @object
  .quad 0
END caml_frametable
#endif
#ifdef STRIPPED_OCAML
  .section .rodata
  .asciz "OCAMLRUNPARAM"
#endif
