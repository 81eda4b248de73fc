/* A page that whoever touches it stops at, with what it holds, until it is let go on (userfaultfd(2)). */
#pragma once
#include "both_ends.h"
#include <linux/userfaultfd.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { PAGE = 4096 };

static char *page;
static int page_faults;

static void hold_page(void)
{
	struct uffdio_api api = {.api = UFFD_API};
	struct uffdio_register all = {.mode = UFFDIO_REGISTER_MODE_MISSING, .range.len = PAGE};

	page_faults = syscall(SYS_userfaultfd, O_CLOEXEC);
	must(ioctl(page_faults, UFFDIO_API, &api) == 0, "userfaultfd");
	page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	all.range.start = (uintptr_t)page;
	must(ioctl(page_faults, UFFDIO_REGISTER, &all) == 0, "UFFDIO_REGISTER");
}

static void let_go_on(void)
{
	struct uffdio_zeropage zero = {.range = {.start = (uintptr_t)page, .len = PAGE}};

	must(ioctl(page_faults, UFFDIO_ZEROPAGE, &zero) == 0, "UFFDIO_ZEROPAGE");
}
