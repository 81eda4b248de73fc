import java.io.InputStream;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;

/**
 * Reads as much as InputStream.available() says is there (FIONREAD, where it is a socket), and nothing else:
 * both ends of connections to itself, one after the other. Available CONNECTIONS BYTES.
 * Says how many bytes came; 1 when one is another, 3 when nothing is said to be there any more.
 */
final class Available {
	private static final long PATIENCE_NS = 10_000_000_000L;

	private static byte at(int position) {
		return (byte) (position * 31 + (position >> 8));
	}

	private static void send(Socket to, int bytes) throws Exception {
		byte[] all = new byte[bytes];
		for (int i = 0; i < bytes; i++) {
			all[i] = at(i);
		}
		to.getOutputStream().write(all);
	}

	private static void read(InputStream from, int bytes) throws Exception {
		byte[] part = new byte[1 << 16];
		long last = System.nanoTime();
		for (int position = 0; position < bytes;) {
			int there = Math.min(from.available(), part.length);
			if (there == 0) {
				if (System.nanoTime() - last > PATIENCE_NS) {
					System.err.println("nothing available behind byte " + position);
					System.exit(3);
				}
				Thread.yield();
				continue;
			}
			int got = from.read(part, 0, there);
			for (int i = 0; i < got; i++, position++) {
				if (part[i] != at(position)) {
					System.err.println("byte " + position + " is another");
					System.exit(1);
				}
			}
			last = System.nanoTime();
		}
	}

	public static void main(String[] words) throws Exception {
		int connections = Integer.parseInt(words[0]);
		int bytes = Integer.parseInt(words[1]);
		try (ServerSocket server = new ServerSocket(0, 16, InetAddress.getLoopbackAddress())) {
			for (int i = 0; i < connections; i++) {
				try (Socket client = new Socket(server.getInetAddress(), server.getLocalPort());
						Socket accepted = server.accept()) {
					Thread sender = new Thread(() -> {
						try {
							send(client, bytes);
						} catch (Exception error) {
							error.printStackTrace();
							System.exit(2);
						}
					});
					sender.start();
					read(accepted.getInputStream(), bytes);
					sender.join();
				}
			}
		}
		System.out.println((long) connections * bytes);
	}
}
