extern "C" int may_throw(int n)
{
	if (n % 3 == 0)
		throw n;
	return n;
}
