//! Tables byte by byte: what is read of them, and what is refused.
use super::*;

const FUNCTION: Range<u64> = 0x1000..0x1100;
const TABLE: u64 = 0x2000;

fn table(bytes: &[u8]) -> Result<Lsda<'_>, Refused> {
    let bytes = Bytes {
        data: bytes,
        svma: TABLE,
        absolute_is_final: false,
    };
    read(bytes, TABLE, &FUNCTION, 0)
}

fn why(bytes: &[u8]) -> &'static str {
    match table(bytes) {
        Err(Refused::Lsda { svma: TABLE, why }) => why,
        other => panic!("{other:?}"),
    }
}

/// No base, types 8 bytes behind, one call site with the first action: a type and a list, in a circle.
const WHOLE: [u8; 20] = [
    0xff, 0x1b, 16, 0x01, 4, 0x10, 0x20, 0x30, 1, 1, 1, 0x7f, 0x7d, 0, 0, 0x10, 0, 0, 0, 1,
];

#[test]
fn a_circle_of_actions_ends() {
    let whole = [WHOLE.as_slice(), &[0]].concat();
    let lsda = table(&whole).unwrap();
    assert_eq!(lsda.actions, [1, 1, 0x7f, 0x7d]);
    let types = lsda.types.unwrap();
    assert_eq!(types.values, [TABLE + 15 + 0x10]);
    assert_eq!(types.filters, [1, 0]);
    let site = &lsda.call_sites[0];
    assert_eq!(
        (site.range.clone(), site.pad),
        (0x1010..0x1030, Some(0x1030))
    );
}

#[test]
fn what_leads_out_of_the_table_is_refused() {
    let with = |at: usize, byte| {
        let mut bytes = WHOLE.to_vec();
        bytes[at] = byte;
        bytes
    };
    assert_eq!(why(&WHOLE), "a list ends early");
    assert_eq!(why(&with(2, 0x7f)), "its types lie outside the file");
    assert_eq!(why(&with(4, 0x7f)), "its call sites lie outside the file");
    assert_eq!(why(&with(4, 2)), "its call sites end early");
    let actions = "its actions lead out of it, or are too many";
    assert_eq!(why(&with(8, 0x7f)), actions);
    assert_eq!(why(&with(12, 0x40)), actions);
    // Into the call sites, where the bytes would do.
    let back = [with(12, 0x77).as_slice(), &[0]].concat();
    assert_eq!(why(&back), actions);
    // The second type would lie in the actions.
    let types = "its types lie outside of it, or are too many";
    assert_eq!(why(&[with(9, 2).as_slice(), &[0]].concat()), types);
    let sites = "its call sites do not ascend, or lie outside the function";
    assert_eq!(
        why(&[0xff, 0xff, 3, 4, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff]),
        "its call sites end early"
    );
    assert_eq!(why(&[0xff, 0xff, 1, 8, 4, 4, 0, 0, 7, 4, 0, 0]), sites);
    assert_eq!(why(&[0xff]), "it ends early");
    assert_eq!(
        why(&[0xff, 0xff, 1, 4, 0, 4, 8, 1, 1, 0]),
        "its actions name types, and it has none"
    );
}

#[test]
fn encodings_that_depend_on_more_than_the_place_are_refused() {
    let encoding = |what, encoding| Err(Refused::PointerEncoding { what, encoding });
    let relocated = |what| Err(Refused::Relocated { what });
    let read = |bytes: &[u8]| table(bytes).map(|_| ());
    assert_eq!(read(&[0x30, 0]), encoding("base of landing pads", 0x30));
    assert_eq!(read(&[0x00, 0]), relocated("base of landing pads"));
    assert_eq!(read(&[0xff, 0xff, 0x11, 0]), encoding("call sites", 0x11));
    let mut types = [WHOLE.as_slice(), &[0]].concat();
    types[1] = 0x3b;
    assert_eq!(read(&types), encoding("type of an exception", 0x3b));
    types[1] = 0x00;
    assert_eq!(read(&types), relocated("type of an exception"));
    types[1] = 0x11;
    assert_eq!(read(&types), encoding("type of an exception", 0x11));
}
