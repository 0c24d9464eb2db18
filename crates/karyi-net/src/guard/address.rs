//! Judges addresses: those of the public internet, and all others.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Blocks of IPv4 that are not public: first address and length of the prefix.
const NOT_PUBLIC_V4: &[(Ipv4Addr, u32)] = &[
    // This network, and no address.
    (Ipv4Addr::new(0, 0, 0, 0), 8),
    // Private.
    (Ipv4Addr::new(10, 0, 0, 0), 8),
    // Between providers and their customers.
    (Ipv4Addr::new(100, 64, 0, 0), 10),
    // Loopback.
    (Ipv4Addr::new(127, 0, 0, 0), 8),
    // Link-local, among them the data of cloud machines.
    (Ipv4Addr::new(169, 254, 0, 0), 16),
    (Ipv4Addr::new(172, 16, 0, 0), 12),
    // Protocols, documentation, relays of 6to4.
    (Ipv4Addr::new(192, 0, 0, 0), 24),
    (Ipv4Addr::new(192, 0, 2, 0), 24),
    (Ipv4Addr::new(192, 88, 99, 0), 24),
    (Ipv4Addr::new(192, 168, 0, 0), 16),
    // Benchmarks.
    (Ipv4Addr::new(198, 18, 0, 0), 15),
    // Documentation.
    (Ipv4Addr::new(198, 51, 100, 0), 24),
    (Ipv4Addr::new(203, 0, 113, 0), 24),
    // Multicast, reserved, broadcast.
    (Ipv4Addr::new(224, 0, 0, 0), 3),
];

/// Returns true for an address of the public internet. An IPv6 address that holds one of IPv4 is judged by that one,
/// too.
#[must_use]
pub(super) fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let has_prefix =
        |(block, length): &(Ipv4Addr, u32)| (address.to_bits() ^ block.to_bits()) >> (32 - length);
    NOT_PUBLIC_V4.iter().all(|block| has_prefix(block) != 0)
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let at = |high: u16, low: u16| Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low));
    match address.segments() {
        // IPv4-mapped, and NAT64.
        [0, 0, 0, 0, 0, 0xffff, high, low] | [0x64, 0xff9b, 0, 0, 0, 0, high, low] => {
            is_public_v4(at(high, low))
        }
        // Teredo: the address of the server, and that of the client with every bit turned.
        [0x2001, 0, high, low, _, _, client_high, client_low] => {
            is_public_v4(at(high, low)) && is_public_v4(at(!client_high, !client_low))
        }
        // 6to4.
        [0x2002, high, low, ..] => is_public_v4(at(high, low)),
        // Protocols and benchmarks, then documentation.
        [0x2001, 0..=0x1ff | 0xdb8, ..] | [0x3fff, 0..=0xfff, ..] => false,
        // All public addresses begin with the bits 001.
        [first, ..] => first >> 13 == 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(addresses: &[&str], expected: bool) {
        for address in addresses {
            let parsed = address.parse().unwrap();
            assert_eq!(is_public(parsed), expected, "{address}");
        }
    }

    #[test]
    fn addresses_of_one_machine_or_network_are_not_public() {
        check(
            &[
                "0.0.0.0",
                "0.1.2.3",
                "10.0.0.1",
                "10.255.255.255",
                "100.64.0.1",
                "100.127.255.255",
                "127.0.0.1",
                "127.255.255.254",
                "169.254.169.254",
                "172.16.0.1",
                "172.31.255.255",
                "192.0.0.1",
                "192.0.2.1",
                "192.88.99.1",
                "192.168.0.1",
                "198.18.0.1",
                "198.19.255.255",
                "198.51.100.7",
                "203.0.113.7",
                "224.0.0.1",
                "239.1.1.1",
                "240.0.0.1",
                "255.255.255.255",
            ],
            false,
        );
        check(
            &[
                "::",
                "::1",
                "::7f00:1",
                "::8.8.8.8",
                "fc00::1",
                "fd12::1",
                "fe80::1",
                "fec0::1",
                "ff02::1",
                "100::1",
                "2001:db8::1",
                "2001:2::1",
                "2001:10::1",
                "2001:20::1",
                "3fff::1",
                "3fff:fff::1",
                "5f00::1",
                "64:ff9b:1::808:808",
                "4000::1",
            ],
            false,
        );
    }

    #[test]
    fn an_address_inside_another_is_judged() {
        check(
            &[
                "::ffff:127.0.0.1",
                "::ffff:10.0.0.1",
                "64:ff9b::7f00:1",
                "64:ff9b::a9fe:a9fe",
                "2002:7f00:1::",
                "2002:a9fe:a9fe::1",
                "2002:c0a8:1::1",
                // A client of 10.0.0.1, then a server of 127.0.0.1.
                "2001:0:808:808::f5ff:fffe",
                "2001:0:7f00:1::f7f7:f7f7",
            ],
            false,
        );
        check(
            &[
                "::ffff:8.8.8.8",
                "64:ff9b::808:808",
                "2002:808:808::1",
                "2001:0:808:808::f7f7:f7f7",
            ],
            true,
        );
    }

    #[test]
    fn the_others_are_public() {
        check(
            &[
                "1.1.1.1",
                "8.8.8.8",
                "9.255.255.255",
                "11.0.0.0",
                "100.63.255.255",
                "100.128.0.0",
                "126.255.255.255",
                "128.0.0.1",
                "169.253.255.255",
                "172.15.255.255",
                "172.32.0.0",
                "192.0.1.1",
                "198.17.255.255",
                "198.20.0.0",
                "223.255.255.255",
                "2606:4700::1111",
                "2001:200::1",
                "2001:4860:4860::8888",
                "3ffe::1",
            ],
            true,
        );
    }
}
