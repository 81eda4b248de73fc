/* Writes to descriptor 1, a socket, what a reader's call ends at: a descriptor sent along, an urgent byte. Then waits for a byte
 * at descriptor 0. Linked statically, so that nothing is preloaded. */
#define _GNU_SOURCE
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static int with_a_descriptor(const char *bytes)
{
    union {
        struct cmsghdr header;
        char room[CMSG_SPACE(sizeof(int))];
    } control = {.header = {CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS}};
    int fd = 2;
    memcpy(CMSG_DATA(&control.header), &fd, sizeof fd);
    struct iovec piece = {(void *)bytes, strlen(bytes)};
    struct msghdr message = {.msg_iov = &piece, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
    return sendmsg(1, &message, 0) == (ssize_t)piece.iov_len;
}

int main(void)
{
    char answer;
    int done = with_a_descriptor("ab") && send(1, "cd", 2, 0) == 2 && send(1, "ef", 2, MSG_OOB) == 2 && send(1, "gh", 2, 0) == 2;
    return !done || read(0, &answer, 1) != 1;
}
