/* In a file of its own: the compiler knows nothing of it where it is called. */
unsigned hash(unsigned x) {
  for (int i = 0; i < 8; i++)
    x = (x * 2654435761u) ^ (x >> 15);
  return x;
}
