/* A destructor that the end of a thread runs. */
extern "C" int calls_who_waits(int fd);
static int cleaned;
struct Guard {
	~Guard() { cleaned++; }
};
extern "C" int guarded(int fd)
{
	Guard guard;
	return calls_who_waits(fd);
}
