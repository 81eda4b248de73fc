// Loaded later: throws through its caller's callback, and catches.
extern "C" int call_back(int (*through)(int (*)(int)))
{
	try {
		return through([](int n) -> int { throw n; });
	} catch (int caught) {
		return caught;
	}
}
