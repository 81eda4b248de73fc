// Unwinding that this file begins itself, through frames without clean-ups, and that ends in a function of its own.
#include <csetjmp>
#include <cstdio>
#include <unwind.h>

static std::jmp_buf out;
static _Unwind_Exception exception;
static int frames;

static _Unwind_Reason_Code stop(int, _Unwind_Action actions, _Unwind_Exception_Class, _Unwind_Exception *, _Unwind_Context *context,
				void *frame)
{
	frames++;
	if (actions & _UA_END_OF_STACK || _Unwind_GetCFA(context) > reinterpret_cast<_Unwind_Word>(frame))
		std::longjmp(out, 1);
	return _URC_NO_REASON;
}

__attribute__((noinline)) static int down(int number, void *frame)
{
	if (number == 0)
		return _Unwind_ForcedUnwind(&exception, stop, frame);
	return down(number - 1, frame) + 1;
}

int main()
{
	int returned = 0;

	if (setjmp(out) == 0)
		returned = down(5, __builtin_frame_address(0));
	std::printf("%d frames, %d\n", frames, returned);
	return 0;
}
