/* As nongnu libunwind: it defines what raises, and nobody in it does. */
struct exception;
int _Unwind_RaiseException(struct exception *e) { return e != 0; }
int _Unwind_Resume_or_Rethrow(struct exception *e) { return _Unwind_RaiseException(e) + 1; }
int depth(int (*step)(void)) { return step() + 1; }
#ifdef RAISES
int raises(void) { return _Unwind_RaiseException(0) + 1; }
#endif
