use super::*;
use std::io::Write;

fn pair() -> (Client, UnixStream) {
    let (near, far) = UnixStream::pair().expect("sockets");
    near.set_nonblocking(true).expect("a socket");
    far.set_nonblocking(true).expect("a socket");
    (Client::new(near, 1), far)
}

fn echo(line: &[u8]) -> Option<String> {
    Some(String::from_utf8_lossy(line).into_owned())
}

fn read(far: &mut UnixStream) -> String {
    let mut bytes = [0; 65_536];
    let len = far.read(&mut bytes).unwrap_or(0);
    String::from_utf8_lossy(&bytes[..len]).into_owned()
}

#[test]
fn lines_are_answered_one_by_one() {
    let (mut client, mut far) = pair();
    far.write_all(b"one\ntwo\nthr").expect("room");
    assert_eq!(client.turn(&mut echo), Wants::Write);
    assert_eq!(read(&mut far), "one\n");
    // Put off, then answered.
    assert_eq!(client.turn(&mut |_| None), Wants::Write);
    assert_eq!(client.turn(&mut echo), Wants::Read);
    assert_eq!(read(&mut far), "two\n");
    far.write_all(b"ee\n").expect("room");
    drop(far.shutdown(std::net::Shutdown::Write));
    assert_eq!(client.turn(&mut echo), Wants::Read);
    assert_eq!(read(&mut far), "three\n");
    assert_eq!(client.turn(&mut echo), Wants::Nothing);
}

#[test]
fn a_line_without_end_is_refused() {
    let (mut client, mut far) = pair();
    far.write_all(&[b'x'; 2 * LINE_MAX]).expect("room");
    let mut wants = Wants::Read;
    for _ in 0..4 {
        wants = client.turn(&mut echo);
    }
    assert_eq!(wants, Wants::Nothing);
    assert!(read(&mut far).contains("at most 4096 bytes"));
}

#[test]
fn who_does_not_read_is_not_read_either() {
    let (mut client, mut far) = pair();
    let long = "x".repeat(1 << 20);
    far.write_all(b"a\nb\nc\n").expect("room");
    let mut answers = 0;
    for _ in 0..100 {
        let wants = client.turn(&mut |_| {
            answers += 1;
            Some(long.clone())
        });
        assert_eq!(wants, Wants::Write);
    }
    assert_eq!(answers, 1, "the first answer has not gone yet");
    while !read(&mut far).is_empty() {
        client.turn(&mut |_| None);
    }
    drop(far);
    for _ in 0..3 {
        client.turn(&mut |_| Some(long.clone()));
    }
    assert_eq!(client.turn(&mut echo), Wants::Nothing);
}
