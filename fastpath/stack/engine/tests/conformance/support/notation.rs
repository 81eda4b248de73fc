//! Segments as text, in packetdrill's notation: `P. 1:1001(1000) ack 1 win 257 <nop,nop,TS val 100 ecr 7>`.
//! Numbers are relative to the initial sequence numbers of both ends. What is left out matches anything.
use super::packet::{ACK, FIN, PSH, RST, SYN, TcpOption, URG};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    pub flags: u8,
    pub seq: u32,
    pub length: u32,
    pub ack: Option<u32>,
    pub window: Option<u16>,
    pub options: Option<Vec<TcpOption>>,
}

/// # Panics
/// The text is none; this is for tests.
pub fn parse(text: &str) -> Line {
    let (head, options) = match text.split_once('<') {
        Some((head, rest)) => (head, Some(rest.trim_end().trim_end_matches('>'))),
        None => (text, None),
    };
    let mut words = head.split_whitespace();
    let flags = flags(words.next().expect("flags"));
    let (seq, length) = range(words.next().expect("range"));
    let mut line = Line {
        flags,
        seq,
        length,
        ack: None,
        window: None,
        options: options.map(parse_options),
    };
    while let Some(word) = words.next() {
        let value = words
            .next()
            .unwrap_or_else(|| panic!("{text}: a number after {word}"));
        match word {
            "ack" => line.ack = Some(number(value)),
            "win" => line.window = Some(value.parse().expect("a window")),
            _ => panic!("{text}: {word}"),
        }
    }
    line
}

/// Negative numbers are before the initial sequence number.
fn number(text: &str) -> u32 {
    let value: i64 = text
        .parse()
        .unwrap_or_else(|_| panic!("{text} is no number"));
    value as u32
}

fn flags(text: &str) -> u8 {
    let bit = |c| match c {
        'F' => FIN,
        'S' => SYN,
        'R' => RST,
        'P' => PSH,
        '.' => ACK,
        'U' => URG,
        '-' => 0,
        _ => panic!("flag {c}"),
    };
    text.chars().map(bit).sum()
}

/// `1:1001(1000)`: the middle is checked against the length.
fn range(text: &str) -> (u32, u32) {
    let (seq, rest) = text.split_once(':').expect("a colon");
    let (end, length) = rest.split_once('(').expect("a length");
    let (seq, end) = (number(seq), number(end));
    let length = number(length.trim_end_matches(')'));
    assert_eq!(end.wrapping_sub(seq), length, "{text}");
    (seq, length)
}

fn parse_options(text: &str) -> Vec<TcpOption> {
    text.split(',')
        .map(str::trim)
        .filter(|t| !t.is_empty())
        .map(option)
        .collect()
}

fn option(text: &str) -> TcpOption {
    let words: Vec<&str> = text.split_whitespace().collect();
    match words[..] {
        ["nop"] => TcpOption::Nop,
        ["eol"] => TcpOption::End,
        ["sackOK"] => TcpOption::SackPermitted,
        ["mss", mss] => TcpOption::Mss(mss.parse().expect("an MSS")),
        ["wscale", shift] => TcpOption::WindowScale(shift.parse().expect("a shift")),
        ["TS", "val", value, "ecr", echo] => TcpOption::Timestamps {
            value: number(value),
            echo: number(echo),
        },
        ["sack", ref blocks @ ..] => {
            let block = |block: &&str| {
                let (start, end) = block.split_once(':').expect("a block");
                (number(start), number(end))
            };
            TcpOption::Sack(blocks.iter().map(block).collect())
        }
        _ => panic!("option {text}"),
    }
}

#[test]
fn a_line_is_read() {
    let line = parse("P. 1:1001(1000) ack 5 win 257 <nop,sack 1:2 3:4,TS val 7 ecr 8>");
    assert_eq!((line.flags, line.seq, line.length), (PSH | ACK, 1, 1000));
    assert_eq!((line.ack, line.window), (Some(5), Some(257)));
    let options = [
        TcpOption::Nop,
        TcpOption::Sack(vec![(1, 2), (3, 4)]),
        TcpOption::Timestamps { value: 7, echo: 8 },
    ];
    assert_eq!(line.options.as_deref(), Some(&options[..]));
    assert_eq!(parse("S 0:0(0)").options, None);
}
