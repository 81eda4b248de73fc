/* Every BPF program, map and link of the kernel, a line each: `prog|map|link ID NAME`. Links have no
 * name. */
#include <errno.h>
#include <linux/bpf.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static int bpf(int command, union bpf_attr *attr) {
  return syscall(SYS_bpf, command, attr, sizeof *attr);
}

static void name_of(int fd, int is_map, char name[BPF_OBJ_NAME_LEN + 1]) {
  union {
    struct bpf_prog_info prog;
    struct bpf_map_info map;
  } info;
  union bpf_attr attr = {0};
  memset(&info, 0, sizeof info);
  attr.info.bpf_fd = fd;
  attr.info.info_len = is_map ? sizeof info.map : sizeof info.prog;
  attr.info.info = (unsigned long)&info;
  if (!bpf(BPF_OBJ_GET_INFO_BY_FD, &attr))
    memcpy(name, is_map ? info.map.name : info.prog.name, BPF_OBJ_NAME_LEN);
}

static int list(const char *kind, int next, int open) {
  unsigned id = 0;
  for (;;) {
    union bpf_attr attr = {.start_id = id};
    if (bpf(next, &attr))
      return errno == ENOENT ? 0 : (perror(kind), 1);
    id = attr.next_id;
    char name[BPF_OBJ_NAME_LEN + 1] = "";
    attr = (union bpf_attr){.prog_id = id};
    int fd = bpf(open, &attr);
    if (fd < 0)
      continue; /* gone between the two calls */
    if (strcmp(kind, "link"))
      name_of(fd, !strcmp(kind, "map"), name);
    close(fd);
    printf("%s %u %s\n", kind, id, name);
  }
}

int main(void) {
  return list("prog", BPF_PROG_GET_NEXT_ID, BPF_PROG_GET_FD_BY_ID) |
         list("map", BPF_MAP_GET_NEXT_ID, BPF_MAP_GET_FD_BY_ID) |
         list("link", BPF_LINK_GET_NEXT_ID, BPF_LINK_GET_FD_BY_ID);
}
