// The one exception table of this file lies right behind the one entry that has it.
int main()
{
	try {
		throw 1;
	} catch (int) {
		return 0;
	}
	return 1;
}
