extern "C" int may_throw(int n)
{
	if (n > 3)
		throw n;
	return n;
}
