//! Clients that know no more of the servers than their protocols.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;

use loadline::database::Endpoint;
use mysql::prelude::Queryable;

/// The first value that a query gives, as text.
pub fn select_from_mysql(endpoint: &Endpoint, over_unix: bool, sql: &str) -> String {
    let options = mysql::OptsBuilder::new()
        .user(Some(&endpoint.user))
        .pass(Some(&endpoint.password))
        .db_name(Some(&endpoint.database))
        .prefer_socket(false);
    let options = if over_unix {
        options.socket(endpoint.unix.as_ref().and_then(|path| path.to_str()))
    } else {
        let (host, port) = endpoint.tcp.clone().unwrap();
        options.ip_or_hostname(Some(host)).tcp_port(port)
    };
    let mut connection = mysql::Conn::new(options).unwrap();
    let value: mysql::Value = connection.query_first(sql).unwrap().unwrap();
    mysql::from_value(value)
}

/// How PostgreSQL answers a startup packet.
pub fn postgres_answer(endpoint: &Endpoint, over_unix: bool) -> &'static str {
    let mut packet = vec![0, 0, 0, 0, 0, 3, 0, 0];
    packet.extend_from_slice(format!("user\0{}\0database\0{}\0\0", endpoint.user, endpoint.database).as_bytes());
    let length = packet.len() as u32;
    packet[..4].copy_from_slice(&length.to_be_bytes());
    let mut answer = [0; 9];
    if over_unix {
        exchange(UnixStream::connect(endpoint.unix.as_ref().unwrap()).unwrap(), &packet, &mut answer);
    } else {
        exchange(TcpStream::connect(endpoint.tcp.clone().unwrap()).unwrap(), &packet, &mut answer);
    }
    match (answer[0], u32::from_be_bytes([answer[5], answer[6], answer[7], answer[8]])) {
        (b'R', 0) => "let in",
        (b'R', 10) => "password asked for",
        _ => "refused",
    }
}

fn exchange(mut stream: impl Read + Write, packet: &[u8], answer: &mut [u8]) {
    stream.write_all(packet).unwrap();
    stream.read_exact(answer).unwrap();
}
