import hashlib, json, re, threading
def deep(n):
    if n == 0:
        raise ValueError("deep")
    return deep(n - 1)
caught = 0
for i in range(2000):
    try:
        deep(i % 50)
    except ValueError as e:
        caught += len(str(e))
for _ in range(20):
    thread = threading.Thread(target=lambda: re.sub("a+", "b", "caat" * 99))
    thread.start()
    thread.join()
print(caught, hashlib.md5(json.dumps(list(range(5000))).encode()).hexdigest())
