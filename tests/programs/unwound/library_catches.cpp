// Only the C++ library catches what is thrown here: a stream what its buffer throws, `new(std::nothrow)` what a new-handler
// throws.
#include <cstdio>
#include <istream>
#include <new>
#include <streambuf>

struct Throws : std::streambuf {
	int_type underflow() override { throw 1; }
};

static void no_memory()
{
	throw std::bad_alloc();
}

int main()
{
	Throws buffer;
	std::istream stream(&buffer);
	int number = 0;
	stream >> number;
	std::set_new_handler(no_memory);
	void *volatile most = ::operator new(std::size_t(-1) / 2, std::nothrow);
	std::printf("%d %d\n", int(stream.rdstate()), most != nullptr);
	return 0;
}
