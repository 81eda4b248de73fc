//! The generated machine code, as a disassembler sees it: any change shows here and is read.
use hopscope_event::record::{FunctionId, RecordKind};
use hopscope_probe::instrument::asm::{Asm, Zone};
use hopscope_probe::instrument::capture::Reg;
use hopscope_probe::instrument::emit::probe::{
    Live, ProbeConfig, RSP, Site, Stores, probe, switched,
};
use hopscope_probe::instrument::emit::slow::{Slow, SlowConfig, claim};
use iced_x86::{Decoder, DecoderOptions, Formatter, GasFormatter, Instruction};

const CONFIG: ProbeConfig = ProbeConfig {
    ring_records_log2: 16,
    bmi2: true,
    stores: Stores::Records,
    switchable: false,
    ordered_stamps: false,
};

fn disassemble(bytes: &[u8]) -> String {
    let mut decoder = Decoder::with_ip(64, bytes, 0x1000, DecoderOptions::NONE);
    let (mut out, mut line, mut ins) = (String::new(), String::new(), Instruction::default());
    let mut formatter = GasFormatter::new();
    while decoder.can_decode() {
        decoder.decode_out(&mut ins);
        if ins.code() == iced_x86::Code::Int3 {
            continue; // padding between zones
        }
        line.clear();
        formatter.format(&ins, &mut line);
        out.push_str(&format!("{:4x} {line}\n", ins.ip() - 0x1000));
    }
    out
}

fn compare(name: &str, got: &str) {
    let path = format!("{}/tests/golden/{name}.s", env!("CARGO_MANIFEST_DIR"));
    if std::env::var_os("HOPSCOPE_BLESS").is_some() {
        std::fs::write(&path, got).unwrap();
    }
    let want = std::fs::read_to_string(&path).expect("golden file (HOPSCOPE_BLESS=1 writes it)");
    assert_eq!(
        got, want,
        "{path}: generated code changed; read it, then HOPSCOPE_BLESS=1"
    );
}

fn switched_probe(live: Live) -> String {
    let config = ProbeConfig {
        switchable: true,
        ordered_stamps: false,
        ..CONFIG
    };
    let mut asm = Asm::new();
    let slow = Slow::both(asm.label_at(0x1000));
    let site = Site {
        function: FunctionId(5),
        kind: RecordKind::Entry,
        live,
        red_zone: false,
        position: RSP,
    };
    switched(&mut asm, &config, slow, site);
    disassemble(&asm.link(0x1000).unwrap())
}

/// Keeping the flags; and where nobody reads them.
#[test]
fn entry_probes_that_can_be_switched_off() {
    compare("entry_switched", &switched_probe(Live::ALL));
    let live = Live {
        flags: false,
        ..Live::ALL
    };
    compare("entry_switched_with_dead_flags", &switched_probe(live));
}

fn one_probe(config: ProbeConfig, kind: RecordKind, live: Live, red_zone: bool) -> String {
    let mut asm = Asm::new();
    let slow = Slow::both(asm.label_at(0x1000));
    let site = Site {
        function: FunctionId(5),
        kind,
        live,
        red_zone,
        position: RSP,
    };
    probe(&mut asm, Zone::Hot, &config, slow, site);
    disassemble(&asm.link(0x1000).unwrap())
}

#[test]
fn entry_probe_with_dead_registers() {
    let live = Live {
        rax: false,
        flags: false,
        ..Live::ALL
    };
    compare("entry", &one_probe(CONFIG, RecordKind::Entry, live, false));
    let live = Live {
        spare: Some(Reg::R11),
        ..live
    };
    compare(
        "entry_spare",
        &one_probe(CONFIG, RecordKind::Entry, live, false),
    );
}

#[test]
fn exit_probe() {
    compare(
        "exit",
        &one_probe(CONFIG, RecordKind::Exit, Live::ALL, false),
    );
}

#[test]
fn tail_exit_probe_without_bmi2() {
    let config = ProbeConfig {
        bmi2: false,
        ..CONFIG
    };
    compare(
        "tail_exit",
        &one_probe(config, RecordKind::TailExit, Live::ALL, true),
    );
}

#[test]
fn slow_path() {
    let mut asm = Asm::new();
    let entry = asm.label();
    let config = SlowConfig {
        contexts_at: 0x7f00_0000_1000,
        contexts: 64,
        pool_at: 0x7f00_0010_0000,
        ring_records_log2: 16,
        tid_at_fs: Some(0x2d0),
        follow_forks: false,
    };
    claim(&mut asm, &config, entry, true);
    compare("slow_path", &disassemble(&asm.link(0x1000).unwrap()));
}
