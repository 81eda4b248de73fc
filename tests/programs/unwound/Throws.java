// Exceptions through interpreted and compiled frames, implicit ones among them, in several threads: the same sums each time.
import java.util.ArrayList;
import java.util.List;

public class Throws {
	static int[] none;

	static long dives(int n, int depth) {
		if (depth > 0)
			return dives(n, depth - 1) + 1;
		switch (n % 5) {
		case 0: throw new IllegalStateException("state " + n);
		case 1: return none[n];
		case 2: return 100 / (n - n);
		case 3: return new int[3][2][n % 7].length;
		default: return (Integer) (Object) ("text " + n).length() / (n - n);
		}
	}

	static long counts(int rounds) {
		long sum = 0;
		for (int n = 0; n < rounds; n++) {
			try {
				sum += dives(n, n % 20);
			} catch (NullPointerException e) {
				sum += 1;
			} catch (ArithmeticException e) {
				sum += 100;
			} catch (RuntimeException e) {
				sum += e.getMessage().length() * 10000;
			} finally {
				sum ^= n;
			}
		}
		return sum;
	}

	static int overflows(int n) {
		return overflows(n + 1) + 1;
	}

	public static void main(String[] arguments) throws Exception {
		List<Thread> threads = new ArrayList<>();
		long[] sums = new long[3];
		for (int n = 0; n < sums.length; n++) {
			int own = n;
			Thread thread = new Thread(() -> sums[own] = counts(20000 + own));
			threads.add(thread);
			thread.start();
		}
		for (Thread thread : threads)
			thread.join();
		for (long sum : sums)
			System.out.println(sum);
		try {
			overflows(0);
		} catch (StackOverflowError e) {
			System.out.println("too deep");
		}
		System.gc();
		System.out.println(new Exception("shown").getStackTrace()[0]);
	}
}
