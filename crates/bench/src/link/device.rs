//! Interfaces: the two ends of each link, their addresses and their shaping, made with `ip` and `tc`.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use super::delay::DelayLine;
use super::plan::{HostPlan, SWITCH};
use super::{LinkError, WIRE};
use crate::database::Namespace;

/// Makes a switch in a namespace of its own.
pub fn open_switch() -> Result<Namespace, LinkError> {
    let switch = Namespace::create().map_err(LinkError::system("make a network namespace"))?;
    quieten(&switch)?;
    // A switch with multicast snooping would join groups, which would be unwanted traffic.
    run(&switch, "ip", &["link", "add", SWITCH, "type", "bridge", "mcast_snooping", "0"])?;
    run(&switch, "ip", &["link", "set", SWITCH, "up"])?;
    Ok(switch)
}

/// Connects a host's namespace to the switch's. Returns the thread that carries its frames if they have a delay.
pub fn connect(host: &Namespace, switch: &Namespace, plan: &HostPlan) -> Result<Option<DelayLine>, LinkError> {
    quieten(host)?;
    let port = plan.port.as_str();
    let delay = match plan.delay_s > 0.0 {
        true => Some(DelayLine::open((host, WIRE), (switch, port), plan.delay_s, plan.delayed_bytes_max())?),
        false => {
            run(host, "ip", &["link", "add", WIRE, "type", "veth", "peer", "name", port, "netns", &switch.path()])?;
            None
        }
    };
    let address = format!("{}/24", plan.wire_address);
    run(host, "ip", &["address", "add", &address, "dev", WIRE])?;
    run(host, "ip", &["link", "set", "lo", "up"])?;
    run(host, "ip", &["link", "set", WIRE, "up"])?;
    if let Some(address) = plan.tunnel_address {
        // The address in the tunnel belongs to no link: only the tunnel's daemon routes packets to it.
        run(host, "ip", &["address", "add", &format!("{address}/32"), "dev", "lo"])?;
    }
    run(switch, "ip", &["link", "set", port, "master", SWITCH, "up"])?;
    if let Some(shape) = plan.shape {
        let words = shape.words();
        for (namespace, device) in [(host, WIRE), (switch, port)] {
            let arguments = ["qdisc", "replace", "dev", device, "root"].into_iter();
            let arguments: Vec<&str> = arguments.chain(words.iter().map(String::as_str)).collect();
            run(namespace, "tc", &arguments)?;
        }
    }
    Ok(delay)
}

/// Keeps hosts from sending IPv6 messages of their own, which would be unwanted traffic.
fn quieten(namespace: &Namespace) -> Result<(), LinkError> {
    let _inside = namespace.enter().map_err(LinkError::system("enter a network namespace"))?;
    for place in ["all", "default"] {
        // A kernel without IPv6 has no such file, and sends nothing.
        let _ = fs::write(format!("/proc/sys/net/ipv6/conf/{place}/disable_ipv6"), "1");
    }
    Ok(())
}

/// Runs a program in a namespace.
pub fn run(namespace: &Namespace, program: &str, arguments: &[&str]) -> Result<(), LinkError> {
    let program = find(program).unwrap_or_else(|| PathBuf::from(program));
    let failed =
        |output: String| LinkError::Program { program: program.clone(), arguments: arguments.join(" "), output };
    let inside = namespace.enter().map_err(LinkError::system("enter a network namespace"))?;
    let output = Command::new(&program).args(arguments).stdin(Stdio::null()).output();
    drop(inside);
    match output {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => {
            let text = String::from_utf8_lossy(&output.stderr);
            Err(failed(text.split_whitespace().collect::<Vec<_>>().join(" ")))
        }
        Err(error) => Err(failed(error.to_string())),
    }
}

/// Finds a program on the PATH, or where system programs are: the PATH of users who become root often lacks these directories.
pub fn find(program: &str) -> Option<PathBuf> {
    use crate::database::recipe::{executable, search_path};
    let usual = ["/usr/sbin", "/sbin", "/usr/bin", "/bin"].map(|place| PathBuf::from(place).join(program));
    search_path(program).into_iter().next().or_else(|| usual.iter().find_map(|path| executable(path)))
}
