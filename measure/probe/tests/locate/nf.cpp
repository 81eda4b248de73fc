#include <stdexcept>
namespace nf {
template <class T> __attribute__((noipa)) T twice(T x) { return x + x; }
struct Acl {
	__attribute__((noipa)) bool match(int x) const { return x > 3; }
};
__attribute__((noipa)) int guarded(int x)
{
	try {
		if (x > 1000)
			throw std::runtime_error("x");
		return twice(x);
	} catch (const std::exception &) {
		return -1;
	}
}
}
int main(int argc, char **) { return nf::guarded(argc) + nf::Acl().match(argc); }
