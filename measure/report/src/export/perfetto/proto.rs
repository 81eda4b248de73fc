//! Protocol buffers, as far as a trace needs them: fields appended to a message.
//! Encoding: protobuf.dev/programming-guides/encoding.

const VARINT: u64 = 0;
const FIXED64: u64 = 1;
const LENGTH: u64 = 2;

/// A message in the making.
#[derive(Debug, Default, Clone)]
pub(super) struct Message(Vec<u8>);

impl Message {
    pub(super) fn new() -> Message {
        Message::default()
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.0
    }

    fn varint(&mut self, mut n: u64) {
        while n > 0x7f {
            self.0.push(n as u8 | 0x80);
            n >>= 7;
        }
        self.0.push(n as u8);
    }

    fn tag(&mut self, field: u64, wire: u64) {
        self.varint(field << 3 | wire);
    }

    pub(super) fn number(mut self, field: u64, n: u64) -> Message {
        self.tag(field, VARINT);
        self.varint(n);
        self
    }

    /// `int32` and `int64`: negative numbers take ten bytes.
    pub(super) fn signed(self, field: u64, n: i64) -> Message {
        self.number(field, n as u64)
    }

    pub(super) fn fixed64(mut self, field: u64, n: u64) -> Message {
        self.tag(field, FIXED64);
        self.0.extend(n.to_le_bytes());
        self
    }

    pub(super) fn double(self, field: u64, n: f64) -> Message {
        self.fixed64(field, n.to_bits())
    }

    pub(super) fn text(self, field: u64, text: &str) -> Message {
        self.raw(field, text.as_bytes())
    }

    pub(super) fn message(self, field: u64, message: &Message) -> Message {
        self.raw(field, &message.0)
    }

    fn raw(mut self, field: u64, bytes: &[u8]) -> Message {
        self.tag(field, LENGTH);
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::Message;

    /// The examples of the encoding's own page.
    #[test]
    fn fields() {
        assert_eq!(Message::new().number(1, 150).bytes(), [0x08, 0x96, 0x01]);
        let testing = Message::new().text(2, "testing");
        assert_eq!(testing.bytes(), b"\x12\x07testing");
        let inner = Message::new().number(1, 150);
        let outer = Message::new().message(3, &inner);
        assert_eq!(outer.bytes(), [0x1a, 0x03, 0x08, 0x96, 0x01]);
        let negative = Message::new().signed(1, -2);
        assert_eq!(
            negative.bytes()[1..],
            [0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1]
        );
        let fixed = Message::new().fixed64(47, 1);
        assert_eq!(fixed.bytes(), [0xf9, 0x02, 1, 0, 0, 0, 0, 0, 0, 0]);
    }
}
