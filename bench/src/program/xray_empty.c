/* Sets an empty XRay handler and patches the sleds in: what the instrumentation alone costs. */
extern int __xray_set_handler(void (*)(int, int));
extern int __xray_patch(void);

static void nothing(int function, int kind)
{
    (void)function;
    (void)kind;
}

__attribute__((constructor)) static void patch(void)
{
    __xray_set_handler(nothing);
    __xray_patch();
}
