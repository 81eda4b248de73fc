use super::*;

fn policy(text: &str) -> Policy {
    Policy {
        wildcard_is_stack: false,
        rules: rules(text).unwrap(),
    }
}

fn asked(kind: SocketKind, call: Call, at: &str) -> Asked {
    let at = at.parse().unwrap();
    Asked { kind, call, at }
}

#[test]
fn the_first_that_fits_decides() {
    let policy = policy(
        "# ours\nkernel port=22 bind\nstack connect address=10.0.0.0/8 port=80,8000-8099 # but these\n\nkernel connect tcp\n",
    );
    let tcp = |call, at| policy.whose(asked(SocketKind::Tcp, call, at));
    assert_eq!(tcp(Call::Bind, "0.0.0.0:22"), Some(Whose::Kernel));
    assert_eq!(tcp(Call::Bind, "[::]:22"), Some(Whose::Kernel));
    assert_eq!(tcp(Call::Bind, "0.0.0.0:80"), None);
    assert_eq!(tcp(Call::Connect, "10.9.9.9:8000"), Some(Whose::Stack));
    assert_eq!(
        tcp(Call::Connect, "[::ffff:10.9.9.9]:80"),
        Some(Whose::Stack)
    );
    assert_eq!(tcp(Call::Connect, "10.9.9.9:8100"), Some(Whose::Kernel));
    assert_eq!(tcp(Call::Connect, "11.9.9.9:80"), Some(Whose::Kernel));
    let udp = asked(SocketKind::Udp, Call::Connect, "11.9.9.9:53");
    assert_eq!(policy.whose(udp), None);
}

#[test]
fn programs_by_name_and_by_path() {
    let all = "kernel program=sshd\nkernel program=/usr/bin/dig udp\nkernel port=9";
    let left = |path| {
        let mut policy = policy(all);
        policy.keep_those_of(Path::new(path));
        policy.rules.len()
    };
    assert_eq!(left("/usr/sbin/sshd"), 2);
    assert_eq!(left("/usr/bin/dig"), 2);
    assert_eq!(left("/opt/bin/dig"), 1);
    assert_eq!(left("/usr/sbin/sshd2"), 1);
}

#[test]
fn what_is_no_rule_is_said_by_line() {
    for (text, why) in [
        ("allow", "line 1: allow: a rule begins with stack or kernel"),
        (
            "stack\nkernel port=80-",
            "line 2: port=80-: no ports, as 80,8000-8099",
        ),
        (
            "kernel port=9-8",
            "line 1: port=9-8: no ports, as 80,8000-8099",
        ),
        (
            "kernel port=70000",
            "line 1: port=70000: no ports, as 80,8000-8099",
        ),
        (
            "kernel udp#c",
            "line 1: udp#c: expected program=NAME, address=IP/LEN, port=N,N-N, tcp, udp, bind or connect",
        ),
        (
            "kernel port=+5",
            "line 1: port=+5: no ports, as 80,8000-8099",
        ),
        (
            "kernel address=::ffff:10.0.0.0/95",
            "line 1: ::ffff:10.0.0.0/95: no address, and no prefix IP/LEN",
        ),
        (
            "kernel address=10.0.0.0/33",
            "line 1: 10.0.0.0/33: no address, and no prefix IP/LEN",
        ),
        ("kernel tcp udp", "line 1: udp: a second one"),
        ("kernel port=1 port=2", "line 1: port: a second one"),
    ] {
        assert_eq!(rules(text).unwrap_err(), why);
    }
    for text in [
        "kernel program=",
        "kernel tcp=1",
        "kernel program",
        "kernel user=7",
        "kernel port=",
    ] {
        let why = rules(text).unwrap_err();
        assert!(
            why.contains("expected program=NAME") || why.contains("no ports"),
            "{text}: {why}"
        );
    }
    assert!(rules(&"kernel\n".repeat(RULES_MAX + 1)).is_err());
}

/// Only by a rule that names it: what is said of all addresses is not meant of loopback.
#[test]
fn loopback() {
    let gives = |text, at| {
        let asked = asked(SocketKind::Tcp, Call::Connect, at);
        policy(text).gives_loopback(asked)
    };
    let both = "stack address=127.0.0.0/8\nstack address=::1";
    assert!(gives(both, "127.0.0.1:80") && gives(both, "[::1]:80"));
    assert!(gives(both, "[::ffff:127.0.0.1]:80"));
    assert!(!gives("stack", "127.0.0.1:80") && !gives("", "127.0.0.1:80"));
    assert!(!gives("stack address=0.0.0.0/0", "127.0.0.1:80"));
    assert!(!gives("stack bind address=127.0.0.1", "127.0.0.1:80"));
    let kernels = format!("kernel port=53\n{both}");
    assert!(!gives(&kernels, "127.0.0.1:53") && gives(&kernels, "127.0.0.1:54"));
}

#[test]
fn prefixes() {
    let within = |a: &str, p: &str, bits| is_within(a.parse().unwrap(), p.parse().unwrap(), bits);
    assert!(within("10.0.0.77", "10.0.0.2", 24));
    assert!(!within("10.0.1.77", "10.0.0.2", 24));
    assert!(within("192.0.2.1", "0.0.0.0", 0));
    assert!(within("fd00::9", "::", 0));
    assert!(within("fd00::9", "fd00::2", 64));
    assert!(!within("fd00::9", "10.0.0.2", 0));
    assert!(!within("10.0.0.3", "10.0.0.2", 32));
}

#[test]
fn mapped_addresses_are_those_of_ipv4() {
    let policy = policy("kernel address=::ffff:10.0.0.0/120");
    let tcp = |at| policy.whose(asked(SocketKind::Tcp, Call::Connect, at));
    assert_eq!(tcp("10.0.0.9:1"), Some(Whose::Kernel));
    assert_eq!(tcp("[::ffff:10.0.0.9]:1"), Some(Whose::Kernel));
    assert_eq!(tcp("10.0.1.9:1"), None);
    let mapped = Rule::kernels(("::ffff:10.0.0.0".parse().unwrap(), 120));
    assert_eq!(mapped, Rule::kernels(("10.0.0.0".parse().unwrap(), 24)));
}

#[test]
fn links_are_what_they_lead_to() {
    let mut policy = policy("kernel program=/usr/bin/python3\nkernel program=python3");
    policy.resolve(|path| (path == "/usr/bin/python3").then(|| "/usr/bin/python3.11".into()));
    policy.keep_those_of(Path::new("/usr/bin/python3.11"));
    assert_eq!(policy.rules.len(), 1);
}
