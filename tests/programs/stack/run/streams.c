/* streams PEER PORT: connections by stdio. The first is echoed; of the second the peer tells the test what came. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static char big[100000];

static int connected(char **words)
{
	struct sockaddr_in peer = {.sin_family = AF_INET, .sin_port = htons(atoi(words[2]))};
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	inet_pton(AF_INET, words[1], &peer.sin_addr);
	if (fd < 0 || connect(fd, (struct sockaddr *)&peer, sizeof(peer))) {
		perror("connect");
		exit(1);
	}
	return fd;
}

__attribute__((format(printf, 2, 3))) static int with_list(int fd, const char *format, ...)
{
	va_list list;
	int written;

	va_start(list, format);
	written = vdprintf(fd, format, list);
	va_end(list);
	return written;
}

static void echoed(FILE *in)
{
	char line[256];

	printf("%s", fgets(line, sizeof(line), in) ? line : "no line\n");
}

static void *writes(void *out)
{
	fwrite(big, 1, sizeof(big), out);
	fflush(out);
	return NULL;
}

static void said(const char *what, long value)
{
	printf("%s %ld %s\n", what, value, value < 0 ? strerror(errno) : "");
}

int main(int count, char **words)
{
	static char back[sizeof(big)];
	int fd = connected(words), twin, pipes[2];
	FILE *out, *in, *both;
	pthread_t writer;

	setvbuf(stdout, NULL, _IONBF, 0);
	/* Integers and floating point in registers and beyond. */
	printf("%d\n", dprintf(fd, "%d %s %ld %.3f %c %d %d %d %.1f %.1f %.1f %.1f %.1f %.1f %.1f %.1f %.1f\n", 1, "two",
			       3L, 4.5, '6', 7, 8, 9, .1, .2, .3, .4, .5, .6, .7, .8, .9));
	printf("%d\n", with_list(fd, "%s %d %.2f\n", "list", -1, 2.25));
	both = fdopen(fd, "r+");
	printf("%d %d %d\n", both != NULL, fileno(both) == fd, fileno_unlocked(both) == fd);
	echoed(both);
	echoed(both);
	fprintf(both, "through %s\n", "both");
	said("flush", fflush(both));
	echoed(both);
	said("seek", fseek(both, 0, SEEK_SET));

	/* Two streams, one for each way; more than any buffer. */
	twin = dup(fd);
	out = fdopen(twin, "w");
	in = fdopen(dup(fd), "rb");
	memset(big, 'x', sizeof(big));
	pthread_create(&writer, NULL, writes, out);
	said("read", fread(back, 1, sizeof(back), in));
	pthread_join(writer, NULL);
	said("another", memcmp(big, back, sizeof(big)));
	fputs("end\n", out);
	said("close", fclose(out));
	said("write to what is closed", write(twin, "", 1));
	echoed(in);
	shutdown(fileno(in), SHUT_WR);
	said("character", fgetc(in));
	said("end", feof(in) != 0);
	said("failed", ferror(in) != 0);
	said("close", fclose(in));
	said("close", fclose(both));

	/* Refused as ever; and others than sockets. */
	fd = connected(words);
	said("mode", fdopen(fd, "x") != NULL);
	said("number", fdopen(1000, "r") != NULL);
	if (pipe(pipes))
		return 1;
	in = fdopen(pipes[0], "r");
	said("pipe", dprintf(pipes[1], "by %s %.1f\n", "pipe", .5));
	said("number", fileno(in) == pipes[0]);
	echoed(in);

	/* What is not written yet is at exit. */
	out = fdopen(fd, "w");
	fprintf(out, "at exit");
	return 0;
}
