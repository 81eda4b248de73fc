//! The engine's configuration from /proc/sys/net/ipv4, which each script's first line sets.
use hopscope_stack_engine::config::{
    Address, BufferSizes, Config, Congestion, Medium, Route, SynCookies, TxOffload,
};
use hopscope_stack_engine::{Ns, TcpConfig};
use std::process::Command;

const LOCAL: [(&str, u8); 2] = [("192.168.0.1", 16), ("fd3d:fa7b:d17d::1", 48)];
/// The medium has no link addresses: any gateway does.
const GATEWAYS: [(&str, &str); 2] = [("0.0.0.0", "192.168.0.2"), ("::", "fd3d:fa7b:d17d::2")];

pub fn config() -> Config {
    let mut config = Config::new(Medium::Ip, [42; 32]);
    config.mtu = mtu();
    config.addresses = LOCAL.map(|(text, bits)| address(text, bits)).to_vec();
    let route = |(destination, gateway): (&str, &str)| Route {
        destination: address(destination, 0),
        gateway: gateway.parse().expect("an address"),
    };
    config.routes = GATEWAYS.map(route).to_vec();
    config.offload = offload();
    config.tcp = tcp();
    config
}

fn address(text: &str, prefix_bits: u8) -> Address {
    let address = text.parse().expect("an address");
    Address {
        address,
        prefix_bits,
    }
}

fn numbers(name: &str) -> Vec<u64> {
    let text = std::fs::read_to_string(format!("/proc/sys/net/ipv4/{name}")).unwrap_or_default();
    text.split_whitespace()
        .filter_map(|word| word.parse().ok())
        .collect()
}

fn number(name: &str, otherwise: u64) -> u64 {
    numbers(name).first().copied().unwrap_or(otherwise)
}

/// tcp_rmem, tcp_wmem: least, initial, most.
fn sizes(name: &str, otherwise: BufferSizes) -> BufferSizes {
    match numbers(name)[..] {
        [_, initial, max] => BufferSizes {
            initial: initial as u32,
            max: max as u32,
        },
        _ => otherwise,
    }
}

fn tcp() -> TcpConfig {
    let default = TcpConfig::default();
    let control = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_congestion_control");
    let early_retransmit = number("tcp_early_retrans", 3);
    TcpConfig {
        congestion: match control.unwrap_or_default().trim() {
            "reno" => Congestion::NewReno,
            _ => Congestion::Cubic,
        },
        sack: number("tcp_sack", 1) != 0,
        timestamps: number("tcp_timestamps", 1) != 0,
        window_scaling: number("tcp_window_scaling", 1) != 0,
        rack: number("tcp_recovery", 1) & 1 != 0,
        tail_loss_probe: matches!(early_retransmit, 3 | 4),
        f_rto: number("tcp_frto", 2) != 0,
        syn_retries: number("tcp_syn_retries", 6) as u8,
        min_frame_segments: number("tcp_min_tso_segs", 2) as u32,
        synack_retries: number("tcp_synack_retries", 5) as u8,
        retries: number("tcp_retries2", 15) as u8,
        fin_timeout: Ns::from_ms(1_000 * number("tcp_fin_timeout", 60)),
        syn_cookies: match number("tcp_syncookies", 1) {
            0 => SynCookies::Never,
            1 => SynCookies::WhenFull,
            _ => SynCookies::Always,
        },
        receive_buffer: sizes("tcp_rmem", default.receive_buffer),
        send_buffer: sizes("tcp_wmem", default.send_buffer),
        ..default
    }
}

/// What `ethtool -K tun0 …` in a script's first line left.
fn offload() -> TxOffload {
    let output = Command::new("ethtool").args(["-k", "tun0"]).output();
    let features = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    let features = features.unwrap_or_default();
    let on = |name: &str| {
        features
            .lines()
            .any(|line| line.trim().starts_with(&format!("{name}: on")))
    };
    let segmentation = on("tcp-segmentation-offload") || on("generic-segmentation-offload");
    TxOffload {
        checksum: true,
        segmentation_v4: segmentation,
        segmentation_v6: segmentation,
    }
}

fn mtu() -> u16 {
    // /sys is that of the namespace which mounted it.
    let output = Command::new("ip")
        .args(["-o", "link", "show", "tun0"])
        .output();
    let text = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    let text = text.unwrap_or_default();
    let after = text
        .split_whitespace()
        .skip_while(|word| *word != "mtu")
        .nth(1);
    after.and_then(|mtu| mtu.parse().ok()).unwrap_or(1500)
}
