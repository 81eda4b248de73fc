/* How many slots of a running `hopscope slice` hold a packet: `bpf_slots PID`. Looked at in the kernel's
 * map behind the process's descriptors; a slot's first eight bytes are 0 while it is free. */
#include <dirent.h>
#include <linux/bpf.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static int bpf(int command, union bpf_attr *attr) {
  return syscall(SYS_bpf, command, attr, sizeof *attr);
}

/* -1: it is another map. */
static long occupied(unsigned id) {
  union bpf_attr attr = {.map_id = id};
  struct bpf_map_info info = {0};
  long count = 0;
  int fd = bpf(BPF_MAP_GET_FD_BY_ID, &attr);
  if (fd < 0)
    return -1;
  attr = (union bpf_attr){0};
  attr.info.bpf_fd = fd;
  attr.info.info_len = sizeof info;
  attr.info.info = (unsigned long)&info;
  if (bpf(BPF_OBJ_GET_INFO_BY_FD, &attr) || strcmp(info.name, "slots")) {
    close(fd);
    return -1;
  }
  uint64_t *value = malloc(info.value_size);
  for (uint32_t key = 0; value && key < info.max_entries; key++) {
    attr = (union bpf_attr){0};
    attr.map_fd = fd;
    attr.key = (unsigned long)&key;
    attr.value = (unsigned long)value;
    if (bpf(BPF_MAP_LOOKUP_ELEM, &attr)) {
      perror("a slot");
      exit(1);
    }
    count += value[0] != 0;
  }
  return count;
}

int main(int argc, char **argv) {
  char path[512], line[256];
  if (argc != 2)
    return 2;
  snprintf(path, sizeof path, "/proc/%s/fdinfo", argv[1]);
  DIR *all = opendir(path);
  struct dirent *entry;
  while (all && (entry = readdir(all))) {
    snprintf(path, sizeof path, "/proc/%s/fdinfo/%s", argv[1], entry->d_name);
    FILE *file = fopen(path, "r");
    unsigned id;
    while (file && fgets(line, sizeof line, file)) {
      long count = sscanf(line, "map_id: %u", &id) == 1 ? occupied(id) : -1;
      if (count >= 0) {
        printf("%ld\n", count);
        return 0;
      }
    }
    if (file)
      fclose(file);
  }
  fputs("no map of slots\n", stderr);
  return 1;
}
