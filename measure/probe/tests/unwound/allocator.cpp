/* An allocator in C with operator new beside it, as jemalloc. */
#include <new>
extern "C" void *malloc(unsigned long);
static __attribute__((noinline)) void *slow(unsigned long size)
{
	for (;;) {
		std::new_handler handler = std::get_new_handler();
		try {
			if (!handler)
				throw std::bad_alloc();
			handler();
		} catch (const std::bad_alloc &) {
			if (size > 1000)
				throw;
			return 0;
		}
	}
}
__attribute__((visibility("default"))) void *operator new(unsigned long size)
{
	void *memory = malloc(size);
	return memory ? memory : slow(size);
}
#ifdef ELSEWHERE
extern "C" void *elsewhere(unsigned long size) { return slow(size); }
#endif
