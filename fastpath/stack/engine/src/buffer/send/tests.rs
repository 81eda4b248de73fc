use super::*;
use proptest::prelude::*;

#[derive(Debug, Clone)]
enum Step {
    Append(Vec<u8>, u16),
    Copy(prop::sample::Index, u16),
    Release(u16),
    Truncate(prop::sample::Index),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (prop::collection::vec(any::<u8>(), 0..9_000), 0u16..20_000)
            .prop_map(|(b, l)| Step::Append(b, l)),
        3 => (any::<prop::sample::Index>(), 0u16..9_000).prop_map(|(o, l)| Step::Copy(o, l)),
        2 => (0u16..9_000).prop_map(Step::Release),
        1 => any::<prop::sample::Index>().prop_map(Step::Truncate),
    ]
}

proptest! {
    #[test]
    fn any_steps_give_what_was_appended(steps in prop::collection::vec(step(), 0..30)) {
        let mut pool = Pool::new(5 * CHUNK_BYTES as u64);
        let (mut buffer, mut model) = (SendBuffer::default(), Vec::new());
        for step in steps {
            match step {
                Step::Append(bytes, limit) => {
                    let taken = buffer.append(&mut pool, &bytes, limit.into());
                    let most = bytes.len().min(usize::from(limit).saturating_sub(model.len()));
                    prop_assert!(taken == most || pool.used_bytes() == 5 * CHUNK_BYTES as u64);
                    model.extend_from_slice(&bytes[..taken]);
                }
                Step::Copy(offset, len) => {
                    let offset = offset.index(model.len() + 1);
                    let expected = model.get(offset..offset + usize::from(len));
                    let mut into = vec![0; len.into()];
                    let sum = buffer.copy(offset, &mut into);
                    prop_assert_eq!(sum, expected.map(Sum::of));
                    prop_assert_eq!(buffer.sum(offset, len.into()), sum);
                    if let Some(expected) = expected {
                        prop_assert_eq!(&into, expected);
                        into.fill(0);
                        prop_assert!(buffer.copy_unsummed(offset, &mut into).is_some());
                        prop_assert_eq!(&into, expected);
                    }
                }
                Step::Release(bytes) => {
                    buffer.release(&mut pool, bytes.into());
                    model.drain(..model.len().min(bytes.into()));
                }
                Step::Truncate(len) => {
                    let len = len.index(model.len() + 1);
                    buffer.truncate(&mut pool, len);
                    model.truncate(len);
                }
            }
            prop_assert_eq!(buffer.len(), model.len());
            prop_assert_eq!(pool.used_bytes() as usize, buffer.chunk_bytes());
            prop_assert!(buffer.chunk_bytes() <= model.len() + 2 * CHUNK_BYTES);
            prop_assert!(!model.is_empty() || pool.used_bytes() == 0);
        }
        buffer.clear(&mut pool);
        prop_assert_eq!(pool.used_bytes(), 0);
    }
}
