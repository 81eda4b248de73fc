//! libpcap's compiler of filter expressions, without the libraries that its capture devices want.
use std::path::{Path, PathBuf};
use std::process::Command;

/// Members of libpcap.a that open a kind of device through a library of its own, and the prefix of
/// the two functions by which libpcap asks for it. hopscope opens no device through libpcap.
const DEVICES: &[(&str, &str)] = &[("pcap-dbus.o", "dbus"), ("pcap-rdmasniff.o", "rdmasniff")];

/// A copy of the machine's libpcap.a whose `DEVICES` answer "not mine" and "none here", to link.
pub fn link() {
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let archive = out.join("libhopscope_pcap.a");
    std::fs::copy(installed(), &archive).expect("libpcap.a can be copied");
    let members = run(Command::new("ar").arg("t").arg(&archive));
    for (member, prefix) in DEVICES {
        if !members.lines().any(|name| name == *member) {
            continue;
        }
        run(Command::new("ar").arg("d").arg(&archive).arg(member));
        run(Command::new("ar")
            .arg("r")
            .arg(&archive)
            .arg(absent(&out, prefix)));
    }
    println!("cargo::rustc-link-search=native={}", out.display());
    println!("cargo::rustc-link-lib=static=hopscope_pcap");
    println!("cargo::rerun-if-changed=build");
}

fn installed() -> PathBuf {
    let path = run(Command::new("cc").arg("-print-file-name=libpcap.a"));
    let path = Path::new(path.trim());
    // The compiler repeats the bare name where it found none.
    assert!(
        path.is_absolute(),
        "no libpcap.a here: install libpcap-dev (scripts/install-deps does)"
    );
    println!("cargo::rerun-if-changed={}", path.display());
    path.to_owned()
}

fn absent(out: &Path, prefix: &str) -> PathBuf {
    let (source, object) = (
        out.join(format!("no_{prefix}.c")),
        out.join(format!("no_{prefix}.o")),
    );
    let text = format!(
        "void *{prefix}_create(const char *device, char *error, int *is_ours) {{\n\
         \t(void)device, (void)error;\n\t*is_ours = 0;\n\treturn 0;\n}}\n\
         int {prefix}_findalldevs(void *list, char *error) {{\n\
         \t(void)list, (void)error;\n\treturn 0;\n}}\n"
    );
    std::fs::write(&source, text).expect("OUT_DIR is writable");
    run(Command::new("cc")
        .args(["-O2", "-fPIC", "-c", "-o"])
        .arg(&object)
        .arg(&source));
    object
}

fn run(command: &mut Command) -> String {
    let out = command
        .output()
        .unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let said = String::from_utf8_lossy(&out.stderr);
    assert!(out.status.success(), "{command:?}: {}: {said}", out.status);
    String::from_utf8_lossy(&out.stdout).into_owned()
}
