/* A hot function with a cold piece, aliases, an ifunc, assembler without size or unwind rows. */
#ifdef __cplusplus
#error "C only"
#endif
__attribute__((noipa)) int work(int x) { return x * 3; }
__attribute__((cold, noipa)) void complain(int x) { __asm__ volatile("" ::"r"(x)); }

__attribute__((noipa)) int hot(int x)
{
	int sum = work(x);
	if (__builtin_expect(x < 0, 0)) {
		complain(x);
		complain(sum);
		sum += work(-x);
	}
	return work(sum) + sum;
}

__attribute__((noipa)) int first_name(int x) { return x + 1; }
int second_name(int x) __attribute__((alias("first_name")));

static int chosen_impl(int x) { return x ^ 5; }
int (*choose(void))(int) { return chosen_impl; }
int chosen(int x) __attribute__((ifunc("choose")));

int sizeless(int x);
__asm__(".text\n.globl sizeless\n.type sizeless,@function\nsizeless:\n"
	"lea 1(%rdi),%eax\nimul %edi,%eax\nret\n"
	".globl after_it\n.type after_it,@function\nafter_it:\nret\n.size after_it,1\n"
	".globl past_the_end\n.type past_the_end,@function\npast_the_end:\nret\n"
	".size past_the_end,0x7fffffff\n"
	".globl after_that\n.type after_that,@function\nafter_that:\nret\n.size after_that,1\n");

int main(int argc, char **argv)
{
	(void)argv;
	return hot(argc) + second_name(argc) + chosen(argc) + sizeless(argc);
}
