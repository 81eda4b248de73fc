def deep(n) = n == 0 ? raise("deep") : deep(n - 1)
caught = 0
2000.times { |i| begin; deep(i % 50); rescue => e; caught += e.message.size; end }
fiber = Fiber.new { 3.times { |i| Fiber.yield i }; :end }
puts caught, 4.times.map { fiber.resume }.inspect, Thread.new { (1..999).map { _1.to_s(7) }.sort.last }.value
