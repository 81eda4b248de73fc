/* Plain C that loads one of its arguments on each line of input, and calls the last on the next. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

/* Its unwind entry cannot be converted: the return address is said to be in rbx. */
__asm__(".globl oddly\n.type oddly, @function\noddly:\n"
        ".cfi_startproc\n.cfi_return_column 3\n"
        "sub $8, %rsp\n.cfi_def_cfa_offset 16\ncall *%rdi\n"
        "add $8, %rsp\n.cfi_def_cfa_offset 8\nret\n"
        ".cfi_endproc\n.size oddly, . - oddly\n");

__attribute__((noinline)) int through(int (*f)(int)) { return f(41) + 1; }

int main(int argc, char **argv)
{
	char line[16];
	const char *ready = getenv("READY_FILE");
	if (argc < 2 || (ready && fclose(fopen(ready, "w"))))
		return 2;
	void *plug_in = NULL;
	for (int i = 1; i < argc; i++) {
		if (!fgets(line, sizeof line, stdin))
			return 3;
		plug_in = dlopen(argv[i], RTLD_NOW);
		if (!plug_in)
			return 4;
	}
	int (*call_back)(int (*)(int (*)(int))) = dlsym(plug_in, "call_back");
	if (!call_back || !fgets(line, sizeof line, stdin))
		return 5;
	return call_back(through) == 41 ? 0 : 6;
}
