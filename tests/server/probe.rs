//! Clients that know no more of the servers than their protocols.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;

use loadline::database::{self, Endpoint};
use loadline::trial::DatabaseSettings;

/// The first value that a query gives, as text.
pub fn select_from_mysql(endpoint: &Endpoint, over_unix: bool, sql: &str) -> String {
    let mut endpoint = endpoint.clone();
    if over_unix {
        endpoint.tcp = None
    } else {
        endpoint.unix = None
    }
    let mariadb = database::find("mariadb").unwrap();
    let database = mariadb.open_sql(&DatabaseSettings::default(), Some(&endpoint)).unwrap();
    database.connect().unwrap().query(sql).unwrap()[0][0].clone().unwrap()
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
