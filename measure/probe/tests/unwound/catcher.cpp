extern "C" int through_another(int n);
extern "C" int catches(int n)
{
	try {
		return through_another(n);
	} catch (int caught) {
		return caught;
	}
}
