//! Grouping of addresses by client, as far as that can be told. Main function: [`network`].

use std::net::IpAddr;

/// Returns the address by which a client is distinguished: the address itself, or its /64, because a client with an IPv6 address has a whole network of
/// them.
pub fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => IpAddr::V6((u128::from(address) & !u128::from(u64::MAX)).into()),
        address => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_of_a_network_stands_for_all_of_it() {
        let of = |text: &str| network(text.parse().unwrap());
        assert_eq!(of("2001:db8::1"), of("2001:db8::ffff:1"));
        assert_ne!(of("2001:db8::1"), of("2001:db8:0:1::1"));
        assert_eq!(of("::ffff:10.0.0.1"), IpAddr::from([10, 0, 0, 1]));
        assert_ne!(of("10.0.0.1"), of("10.0.0.2"));
    }
}
