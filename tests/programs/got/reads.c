// Compiled for the large code model: a function's address is read from the table by the table's own address.
int compared(int);

void *read_from_the_table(void) {
    return (void *)compared;
}
