//! The ranges of addresses that are no hosts of the open network: the special-purpose registries of IANA for IPv4 and IPv6, and
//! multicast.

use std::net::IpAddr;
use std::sync::LazyLock;

/// A range of addresses with a purpose of its own.
pub(super) struct SpecialRange {
    first: IpAddr,
    /// The bits that all of its addresses have in common.
    bits: u32,
    /// Its name in the registry.
    pub(super) name: &'static str,
    /// The document that says what it is for.
    pub(super) rfc: &'static str,
}

/// A range inside another one stands before it. All count as not public, also those that are reachable from everywhere (anycast
/// services, AS112), since none is the host of a party.
pub(super) static SPECIAL: LazyLock<Vec<SpecialRange>> = LazyLock::new(|| {
    let range = |row: &'static str| {
        let mut columns = row.split("; ");
        let (first, bits) = columns.next()?.split_once('/')?;
        Some(SpecialRange {
            first: first.parse().ok()?,
            bits: bits.parse().ok()?,
            rfc: columns.next()?,
            name: columns.next()?,
        })
    };
    let rows = include_str!("special.txt").lines();
    // A test looks at each row.
    rows.map(|row| range(row).expect("a range, its document and its name"))
        .collect()
});

/// An address as a number at the top of 128 bits, so that both kinds have their prefixes there.
const fn special_address_as_number(ip: IpAddr) -> u128 {
    match ip {
        IpAddr::V4(ip) => (ip.to_bits() as u128) << 96,
        IpAddr::V6(ip) => ip.to_bits(),
    }
}

impl SpecialRange {
    fn has(&self, ip: IpAddr) -> bool {
        let differs = special_address_as_number(self.first) ^ special_address_as_number(ip);
        self.first.is_ipv4() == ip.is_ipv4() && differs.leading_zeros() >= self.bits
    }
}

/// The range of an address with a purpose of its own; none where it is a host of the open network, or was given to nobody.
pub(super) fn special_range(ip: IpAddr) -> Option<&'static SpecialRange> {
    SPECIAL.iter().find(|range| range.has(ip))
}

/// Whether an address is one of the open network. One of a part that was given to nobody is not.
pub(super) fn is_public(ip: IpAddr) -> bool {
    let is_given = match ip {
        IpAddr::V4(_) => true,
        // 2000::/3 is the global space.
        IpAddr::V6(ip) => ip.segments()[0] & 0xe000 == 0x2000,
    };
    is_given && special_range(ip).is_none()
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, Ipv6Addr};

    use super::*;

    /// Each range with its first and last address, and whether the addresses before and after it are public.
    const EXPECTED: &str = "
        0.0.0.0          0.0.0.0          -                 -
        0.0.0.0          0.255.255.255    -                 1.0.0.0
        10.0.0.0         10.255.255.255   9.255.255.255     11.0.0.0
        100.64.0.0       100.127.255.255  100.63.255.255    100.128.0.0
        127.0.0.0        127.255.255.255  126.255.255.255   128.0.0.0
        169.254.0.0      169.254.255.255  169.253.255.255   169.255.0.0
        172.16.0.0       172.31.255.255   172.15.255.255    172.32.0.0
        192.0.0.0        192.0.0.7        191.255.255.255   -
        192.0.0.8        192.0.0.8        -                 -
        192.0.0.9        192.0.0.9        -                 -
        192.0.0.10       192.0.0.10       -                 -
        192.0.0.170      192.0.0.171      -                 -
        192.0.0.0        192.0.0.255      191.255.255.255   192.0.1.0
        192.0.2.0        192.0.2.255      192.0.1.255       192.0.3.0
        192.31.196.0     192.31.196.255   192.31.195.255    192.31.197.0
        192.52.193.0     192.52.193.255   192.52.192.255    192.52.194.0
        192.88.99.2      192.88.99.2      -                 -
        192.88.99.0      192.88.99.255    192.88.98.255     192.88.100.0
        192.168.0.0      192.168.255.255  192.167.255.255   192.169.0.0
        192.175.48.0     192.175.48.255   192.175.47.255    192.175.49.0
        198.18.0.0       198.19.255.255   198.17.255.255    198.20.0.0
        198.51.100.0     198.51.100.255   198.51.99.255     198.51.101.0
        203.0.113.0      203.0.113.255    203.0.112.255     203.0.114.0
        224.0.0.0        239.255.255.255  223.255.255.255   -
        255.255.255.255  255.255.255.255  -                 -
        240.0.0.0        255.255.255.255  -                 -
        ::1              ::1              -                 -
        ::               ::               -                 -
        ::ffff:0:0       ::ffff:ffff:ffff -                 -
        64:ff9b::        64:ff9b::ffff:ffff - -
        64:ff9b:1::      64:ff9b:1:ffff:ffff:ffff:ffff:ffff - -
        100::            100::ffff:ffff:ffff:ffff - -
        100:0:0:1::      100::1:ffff:ffff:ffff:ffff - -
        2001::           2001:0:ffff:ffff:ffff:ffff:ffff:ffff 2000:ffff:ffff:ffff:ffff:ffff:ffff:ffff -
        2001:1::1        2001:1::1        -                 -
        2001:1::2        2001:1::2        -                 -
        2001:1::3        2001:1::3        -                 -
        2001:2::         2001:2:0:ffff:ffff:ffff:ffff:ffff - -
        2001:3::         2001:3:ffff:ffff:ffff:ffff:ffff:ffff - -
        2001:4:112::     2001:4:112:ffff:ffff:ffff:ffff:ffff - -
        2001:10::        2001:1f:ffff:ffff:ffff:ffff:ffff:ffff - -
        2001:20::        2001:2f:ffff:ffff:ffff:ffff:ffff:ffff - -
        2001:30::        2001:3f:ffff:ffff:ffff:ffff:ffff:ffff - -
        2001::           2001:1ff:ffff:ffff:ffff:ffff:ffff:ffff 2000:ffff:ffff:ffff:ffff:ffff:ffff:ffff 2001:200::
        2001:db8::       2001:db8:ffff:ffff:ffff:ffff:ffff:ffff 2001:db7:ffff:ffff:ffff:ffff:ffff:ffff 2001:db9::
        2002::           2002:ffff:ffff:ffff:ffff:ffff:ffff:ffff 2001:ffff:ffff:ffff:ffff:ffff:ffff:ffff 2003::
        2620:4f:8000::   2620:4f:8000:ffff:ffff:ffff:ffff:ffff 2620:4f:7fff:ffff:ffff:ffff:ffff:ffff 2620:4f:8001::
        3fff::           3fff:fff:ffff:ffff:ffff:ffff:ffff:ffff 3ffe:ffff:ffff:ffff:ffff:ffff:ffff:ffff 3fff:1000::
        5f00::           5f00:ffff:ffff:ffff:ffff:ffff:ffff:ffff - -
        fc00::           fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff - -
        fe80::           febf:ffff:ffff:ffff:ffff:ffff:ffff:ffff - -
        fec0::           feff:ffff:ffff:ffff:ffff:ffff:ffff:ffff - -
        ff00::           ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff - -
    ";

    /// The address that many away, of the same kind; none beyond the first and the last one.
    fn neighbour(ip: IpAddr, by: i8) -> Option<IpAddr> {
        let moved = |bits: u128| match by {
            1 => bits.checked_add(1),
            _ => bits.checked_sub(1),
        };
        match ip {
            IpAddr::V4(ip) => {
                let bits = u32::try_from(moved(ip.to_bits().into())?).ok()?;
                Some(Ipv4Addr::from_bits(bits).into())
            }
            IpAddr::V6(ip) => Some(Ipv6Addr::from_bits(moved(ip.to_bits())?).into()),
        }
    }

    #[test]
    fn each_range_ends_where_the_registry_says() {
        let rows: Vec<Vec<&str>> = EXPECTED
            .lines()
            .map(|line| line.split_ascii_whitespace().collect())
            .filter(|row: &Vec<&str>| !row.is_empty())
            .collect();
        assert_eq!(rows.len(), SPECIAL.len());
        let ip = |text: &str| text.parse::<IpAddr>().expect("an address");
        for (row, range) in rows.iter().zip(SPECIAL.iter()) {
            let (first, last) = (ip(row[0]), ip(row[1]));
            let about = format!("{row:?}: {}, {}", range.name, range.rfc);
            for inside in [first, last] {
                assert!(range.has(inside) && !is_public(inside), "{about}");
            }
            for (outside, expected) in [(neighbour(first, -1), row[2]), (neighbour(last, 1), row[3])] {
                let Some(outside) = outside else { continue };
                assert!(!range.has(outside), "{about}: {outside}");
                match expected {
                    "-" => assert!(!is_public(outside), "{about}: {outside}"),
                    public => assert!(outside == ip(public) && is_public(outside), "{about}: {outside}"),
                }
            }
        }
    }

    #[test]
    fn an_address_is_named_by_the_narrowest_range() {
        let named = |text: &str| special_range(text.parse().expect("an address")).map(|range| range.rfc);
        assert_eq!(named("192.88.99.1"), Some("RFC 7526"));
        assert_eq!(named("192.88.99.2"), Some("RFC 6751"));
        assert_eq!(named("255.255.255.255"), Some("RFC 8190"));
        assert_eq!(named("93.184.216.34"), None);
        assert_eq!(named("2606:2800::1"), None);
    }
}
