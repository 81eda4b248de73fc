use crate::filter::{FILLER, PlaceError, pad, place, place_in_object};

/// `r0 = 0x686f7031`, `r0 = 0x686f7032`.
const MARKER: [u64; 2] = [0x686f_7031_0000_00b7, 0x686f_7032_0000_00b7];
const EXIT: u64 = 0x95;
const OTHER: u64 = 0x0000_0007_0000_06b7;

fn program(fillers: usize) -> Vec<u64> {
    let mut program = vec![OTHER, OTHER];
    program.extend(MARKER);
    program.resize(4 + fillers, FILLER);
    program.extend([OTHER, EXIT]);
    program
}

#[test]
fn exactly_the_block_is_replaced() {
    let mut placed = program(6);
    place(&mut placed, MARKER, 8, &[1, 2, 3]).unwrap();
    assert_eq!(placed.len(), program(6).len());
    assert_eq!(placed[..5], [OTHER, OTHER, 1, 2, 3]);
    assert_eq!(placed[5..10], pad(&[], 5).unwrap());
    assert_eq!(placed[10..], [OTHER, EXIT]);
}

#[test]
fn padding_fills_every_length() {
    for len in 3..40 {
        let padded = pad(&[7, 8, 9], len).unwrap();
        assert_eq!((padded.len(), &padded[..3]), (len, &[7, 8, 9][..]));
        if let [_, _, _, set, jump, rest @ ..] = &padded[..]
            && !rest.is_empty()
        {
            // r5 = 0; if r5 == 0 goto the end.
            assert_eq!(*set, 0x05b7);
            assert_eq!(*jump, 0x0515 | (rest.len() as u64) << 16);
        }
    }
    let too_long = PlaceError::TooLong { insns: 3, room: 2 };
    assert_eq!(pad(&[7, 8, 9], 2), Err(too_long));
}

#[test]
fn what_is_not_one_whole_block_is_left_alone() {
    let refused = |mut program: Vec<u64>, filter: &[u64]| {
        let before = program.clone();
        let error = place(&mut program, MARKER, 8, filter).unwrap_err();
        assert_eq!(program, before);
        error
    };
    assert_eq!(refused(vec![OTHER, EXIT], &[]), PlaceError::Missing);
    assert_eq!(refused(vec![], &[]), PlaceError::Missing);
    let twice = [program(6), program(6)].concat();
    assert_eq!(
        refused(twice, &[]),
        PlaceError::Twice {
            first: 2,
            second: 14
        }
    );
    for fillers in [5, 7] {
        let (at, present, wanted) = (2, fillers + 2, 8);
        assert_eq!(
            refused(program(fillers), &[]),
            PlaceError::Length {
                at,
                present,
                wanted
            }
        );
    }
    assert_eq!(
        refused(program(6), &[1; 9]),
        PlaceError::TooLong { insns: 9, room: 8 }
    );
}

#[test]
fn every_block_of_an_object_is_replaced() {
    let bytes = |words: &[u64]| -> Vec<u8> { words.iter().flat_map(|w| w.to_le_bytes()).collect() };
    let tail = [0xee; 5];
    let object = |blocks: &[usize]| {
        let words: Vec<u64> = blocks
            .iter()
            .flat_map(|fillers| program(*fillers))
            .collect();
        [bytes(&words), tail.to_vec()].concat()
    };
    let mut placed = object(&[6, 6]);
    assert_eq!(place_in_object(&mut placed, MARKER, 8, &[1, 2, 3]), Ok(2));
    let mut once = program(6);
    place(&mut once, MARKER, 8, &[1, 2, 3]).unwrap();
    let expected = [bytes(&once), bytes(&once), tail.to_vec()].concat();
    assert_eq!(placed, expected);

    let refused = |mut object: Vec<u8>, filter: &[u64]| {
        let before = object.clone();
        let error = place_in_object(&mut object, MARKER, 8, filter).unwrap_err();
        assert_eq!(object, before);
        error
    };
    assert_eq!(refused(vec![0; 100], &[]), PlaceError::Missing);
    let (at, present, wanted) = (14, 7, 8);
    let length = PlaceError::Length {
        at,
        present,
        wanted,
    };
    assert_eq!(refused(object(&[6, 5]), &[]), length);
    let too_long = PlaceError::TooLong { insns: 9, room: 8 };
    assert_eq!(refused(object(&[6, 6]), &[1; 9]), too_long);
}
