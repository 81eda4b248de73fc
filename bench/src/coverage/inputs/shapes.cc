// What a compiler is busy with: templates, virtual functions, clean-ups, exceptions.
template <int N> struct Count { enum { value = Count<N - 1>::value + Count<N - 2>::value }; };
template <> struct Count<1> { enum { value = 1 }; };
template <> struct Count<0> { enum { value = 0 }; };
struct Shape {
  virtual ~Shape() {}
  virtual int area() const = 0;
};
struct Square : Shape {
  int side;
  Square(int s) : side(s) { if (s < 0) throw s; }
  int area() const { return side * side; }
};
struct Held {
  Shape *shape;
  Held(Shape *s) : shape(s) {}
  ~Held() { delete shape; }
};
int sum(const int *sides, int n) {
  int total = Count<20>::value;
  for (int i = 0; i < n; i++) {
    try {
      Held held(new Square(sides[i]));
      total += held.shape->area();
    } catch (int wrong) {
      total -= wrong;
    }
  }
  return total;
}
