// Another module that calls the library.
int three(int);
int one(int);

int used(int n) {
    int sum = 0;
    for (int i = 0; i < n; i++) sum += three(i) + one(i);
    return sum;
}
