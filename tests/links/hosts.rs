//! Hosts for nodes, of which one is cut off from the others.

use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use loadline::database::NodeHost;
use loadline::link::{Plug, open_hosts};

/// Whether a connection from one host to an address comes about within a while.
fn reaches(from: &NodeHost, address: SocketAddr) -> bool {
    let _inside = from.namespace.enter().unwrap();
    TcpStream::connect_timeout(&address, Duration::from_millis(500)).is_ok()
}

/// Asserts that a connection comes about in time: a link takes a moment until it carries anything, and a busy machine longer.
fn assert_reaches(from: &NodeHost, address: SocketAddr, otherwise: &str) {
    let patience = Instant::now() + Duration::from_secs(120);
    while !reaches(from, address) {
        assert!(Instant::now() < patience, "{otherwise}");
    }
}

fn listener(on: &NodeHost, address: Ipv4Addr) -> (TcpListener, SocketAddr) {
    let _inside = on.namespace.enter().unwrap();
    let listener = TcpListener::bind((address, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    (listener, address)
}

#[test]
fn a_host_that_is_cut_off_reaches_no_other_and_is_reached_from_itself() {
    if !super::is_root() {
        return;
    }
    let hosts = open_hosts(3).unwrap();
    let [first, second, third] = &hosts[..] else { panic!("{} hosts", hosts.len()) };
    let (_listens, of_first) = listener(first, first.address);
    let (_listens, of_second) = listener(second, second.address);
    let (_listens, inside_second) = listener(second, Ipv4Addr::LOCALHOST);
    for (from, to) in [(second, of_first), (third, of_first), (first, of_second), (third, of_second)] {
        assert_reaches(from, to, "a new link carries nothing");
    }
    assert!(TcpStream::connect_timeout(&of_first, Duration::from_millis(500)).is_err(), "the machine reaches none");
    let plug = Plug::of_node(second);
    plug.pull().unwrap();
    assert!(!reaches(second, of_first) && !reaches(first, of_second) && !reaches(third, of_second));
    assert_reaches(third, of_first, "the others still reach each other");
    assert_reaches(second, inside_second, "clients are on its own host");
    plug.put_back().unwrap();
    for (from, to) in [(first, of_second), (second, of_first)] {
        assert_reaches(from, to, "a link that was given back carries nothing");
    }
}
