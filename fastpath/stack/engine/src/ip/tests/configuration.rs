//! Configurations that are refused.
use super::super::Interface;
use super::support::config;
use crate::config::{Address, ConfigError, Share};

#[test]
fn configurations_that_cannot_be() {
    let refused = |change: fn(&mut crate::Config)| {
        let mut config = config();
        change(&mut config);
        Interface::new(&config).err()
    };
    let address = |text: &str, prefix_bits| Address {
        address: text.parse().unwrap(),
        prefix_bits,
    };
    assert_eq!(
        refused(|c| c.mtu = 1279),
        Some(ConfigError::MtuTooSmall {
            mtu: 1279,
            least: 1280,
            family: "IPv6"
        })
    );
    assert_eq!(
        refused(|c| c.addresses.clear()),
        Some(ConfigError::NoAddress)
    );
    assert_eq!(
        refused(|c| c.share = Share {
            index: 2,
            of: 2,
            ..Share::ALONE
        }),
        Some(ConfigError::Share { index: 2, of: 2 })
    );
    assert!(matches!(
        refused(|c| c.addresses[0].prefix_bits = 33),
        Some(ConfigError::Prefix { most: 32, .. })
    ));
    assert!(matches!(
        refused(|c| c.addresses[1].prefix_bits = 129),
        Some(ConfigError::Prefix { most: 128, .. })
    ));
    for text in [
        "0.0.0.0",
        "255.255.255.255",
        "127.0.0.1",
        "224.0.0.1",
        "10.0.0.255",
        "ff02::1",
        "::",
        "::1",
    ] {
        let mut config = config();
        config.addresses = vec![address(text, 24)];
        let refused = Interface::new(&config).err();
        assert_eq!(
            refused,
            Some(ConfigError::NotUnicast(text.parse().unwrap())),
            "{text}"
        );
    }
    let mut point_to_point = config();
    point_to_point.addresses = vec![address("10.0.0.1", 31), address("10.0.1.255", 32)];
    assert!(Interface::new(&point_to_point).is_ok(), "RFC 3021");
}
