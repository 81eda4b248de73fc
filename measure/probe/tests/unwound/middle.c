/* Plain C between one who throws and one who catches. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int may_throw(int n);

int through_the_table(int n) { return may_throw(n) + 1; }
int through_another(int n) { return through_the_table(n) + 1; }
/* A jump: its own frame is gone when the other throws. */
int ends_in_it(int n) { return may_throw(n); }
int through_pointer(int (*f)(int)) { return f(3) + 1; }
int sorts(int *v, size_t n, int (*compare)(const void *, const void *))
{
	qsort(v, n, sizeof *v, compare);
	return v[0];
}
size_t quiet(char *to, const char *from) { return strlen(strcpy(to, from)) + 1; }
int waits(int fd)
{
	char byte;
	return read(fd, &byte, 1) + 1;
}
int calls_who_waits(int fd) { return waits(fd) + 1; }
