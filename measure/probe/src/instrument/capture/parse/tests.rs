use super::*;

fn expr(text: &str) -> Expr {
    Wanted::parse(text).unwrap().what
}

fn path(root: &str, steps: Vec<Step>) -> Expr {
    let root = root.into();
    Expr::Path { root, steps }
}

#[test]
fn names_members_and_elements() {
    assert_eq!(expr("n"), path("n", vec![]));
    assert_eq!(expr("return"), Expr::Return);
    let steps = vec![
        Step::Arrow("pkts".into()),
        Step::Slice(Box::new(Limit::Value(expr("frame->n")))),
        Step::Dot("seq".into()),
    ];
    assert_eq!(expr("frame->pkts[0..frame->n].seq"), path("frame", steps));
    assert_eq!(expr("a[3]"), path("a", vec![Step::Index(3)]));
    let four = Step::Slice(Box::new(Limit::Number(4)));
    assert_eq!(expr(" a [ 0 .. 4 ] "), path("a", vec![four]));
}

#[test]
fn registers_and_offsets() {
    let load = |scalar, at, offset| {
        let (at, elements) = (Box::new(at), None);
        Raw::Load {
            scalar,
            at,
            offset,
            elements,
        }
    };
    assert_eq!(expr("arg6"), Expr::Raw(Raw::Argument(5)));
    let inner = load(Scalar::WORD, Raw::Argument(0), 8);
    let outer = load(Scalar::native(2, true), inner, -16);
    assert_eq!(expr("i16(u64(arg1 + 8) - 0x10)"), Expr::Raw(outer));
    let Expr::Raw(Raw::Load { elements, .. }) = expr("u32(arg1+4)[0..arg2]") else {
        panic!("a load");
    };
    let limit = Limit::Value(Expr::Raw(Raw::Argument(1)));
    assert_eq!(elements, Some(Box::new(limit)));
}

#[test]
fn bytes_behind_a_named_pointer() {
    let cast = expr("be32(frame->pkts[0..n].data + 44)");
    let Expr::Cast {
        scalar,
        root,
        steps,
        offset,
    } = cast
    else {
        panic!("a cast");
    };
    assert!(scalar.swapped && scalar.bytes == 4);
    assert_eq!((root.as_str(), steps.len(), offset), ("frame", 3, 44));
    let name = Wanted::parse("be32(frame->pkts[0..n].data+44)")
        .unwrap()
        .name();
    assert_eq!(name, "be32(frame->pkts[].data+44)");
}

#[test]
fn counters() {
    let s = Selection::parse("nf!acl_*(frame->n, @instructions, @L1-dcache-load-misses, ret)");
    let s = s.unwrap();
    let counters: Vec<_> = s.counters().collect();
    assert_eq!(counters, ["instructions", "L1-dcache-load-misses"]);
    assert_eq!(s.captures.len(), 4);
    assert_eq!(s.captures[1].name(), "@instructions");
}

#[test]
fn a_selection_is_a_pattern_and_captures() {
    let s = Selection::parse("nf!acl_*(frame->n, frame->pkts[0..n].seq, u32(arg2+4), ret)");
    let s = s.unwrap();
    assert_eq!(s.pattern.to_string(), "nf!acl_*");
    let texts: Vec<_> = s.captures.iter().map(|c| c.text.as_str()).collect();
    let wanted = ["frame->n", "frame->pkts[0..n].seq", "u32(arg2+4)", "ret"];
    assert_eq!(texts, wanted);
    let at_path = Selection::parse("/usr/bin/nf!acl_in(n)").unwrap();
    assert_eq!(at_path.captures.len(), 1);
    assert_eq!(at_path.pattern.to_string(), "/usr/bin/nf!acl_in");
    let regex = Selection::parse("/^(acl|nat)_in$/(n)").unwrap();
    assert_eq!(regex.pattern.to_string(), "/^(acl|nat)_in$/");
    assert_eq!(regex.captures.len(), 1);
    let group = Selection::parse("/^acl_(in|out)$/").unwrap();
    assert_eq!(group.captures, []);
    assert_eq!(Selection::parse("foo(char const*)").unwrap().captures, []);
    assert_eq!(Selection::parse("foo").unwrap().captures, []);
}

#[test]
fn prefixes_say_what_is_measured_of_a_function() {
    let parse = |text: &str| Selection::parse(text).unwrap();
    let calls = parse("nf!calls:worker*");
    assert!(matches!(calls.calls, Some(CallsOf::Pointers)) && !calls.inlined);
    assert_eq!(calls.to_string(), "calls:nf!worker*");
    let named = parse("calls:nf!send->eth_*");
    assert!(matches!(named.calls, Some(CallsOf::Named(_))) && named.callers.is_none());
    assert_eq!(named.to_string(), "calls:nf!send->eth_*");
    assert!(parse("inlined:f").inlined);
    let namespaces = ["calls::f", "inlined::f", "nf!calls::f"].map(parse);
    assert!(namespaces.iter().all(|s| s.calls.is_none() && !s.inlined));
}

#[test]
fn errors_say_what_is_wrong() {
    let why = |text: &str| Selection::parse(text).unwrap_err().to_string();
    assert!(
        why("f(a->)").contains("a name is missing"),
        "{}",
        why("f(a->)")
    );
    assert!(why("f()").contains("a name is missing"));
    assert!(why("f(a[0..n].b[0..n])").contains("only one"));
    assert!(why("f(a[1..4])").contains("begin at 0"));
    assert!(why("f(arg7)").contains("arg1 to arg6"));
    assert!(why("f(a b)").contains("unexpected \"b\""));
    assert!(why("f(a[0..return])").contains("not known at the entry"));
    assert!(why("f(u32(arg9))").contains("arg1 to arg6"));
    assert!(why("f(u32(a)").contains("\")\" is missing"));
    assert!(why("f(3)").contains("no name"));
    assert!(why("f(a[x])").contains("not a number"));
    assert!(why("f(@)").contains("behind @"));
    assert!(why("inlined:f(@cycles)").contains("not inlined"));
    assert!(why("nf->calls:f").contains("whoever calls it"));
    assert!(why("calls:f(n)").contains("a -f of its own"));
    assert!(why("calls:f(@cycles)").contains("a -f of its own"));
    assert!(why("calls:inlined:f").contains("that it is in"));
    assert!(why("f(@a b)").contains("unexpected \"b\""));
    assert!(why("f(a[0..@cycles])").contains("no number of elements"));
}
