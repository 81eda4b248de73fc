//! Back ends that no front end can use.
use anyhow::Result;
use std::io::{Read, Write};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::thread::JoinHandle;

/// Answers one front end's first questions with `features`, as message `answer_as` where that is given, and ends
/// when it goes.
pub(super) fn start(
    socket: &Path,
    features: u64,
    answer_as: Option<u32>,
) -> Result<JoinHandle<std::io::Result<()>>> {
    let listener = UnixListener::bind(socket)?;
    Ok(std::thread::spawn(move || {
        let (mut front, _) = listener.accept()?;
        let mut header = [0; 12];
        while front.read_exact(&mut header).is_ok() {
            let word = |n: usize| {
                let [a, b, c, d] = [header[n], header[n + 1], header[n + 2], header[n + 3]];
                u32::from_ne_bytes([a, b, c, d])
            };
            let (request, len) = (word(0), word(8));
            front.read_exact(&mut vec![0; len as usize])?;
            if request == 1 {
                let words = [answer_as.unwrap_or(request), 5, 8];
                let mut answer: Vec<u8> = words.into_iter().flat_map(u32::to_ne_bytes).collect();
                answer.extend(features.to_ne_bytes());
                front.write_all(&answer)?;
            }
        }
        Ok(())
    }))
}
