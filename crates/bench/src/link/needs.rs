//! Checks that this machine has what links need, before anything is made.

use std::path::Path;
use std::process::{Command, Stdio};

use super::device::find;
use super::tunnel::{CHARON, PLUGINS, PRIVATE_VIEW};
use super::{LinkError, SUITES};
use crate::database::Namespace;
use crate::trial::LinkSettings;

const TUN: &str = "/dev/net/tun";

/// Checks that a link can be made here: that the user has the rights and that the programs are installed.
///
/// # Errors
/// The first requirement that is missing, with the setting that asks for it and the remedy.
pub fn check(link: &LinkSettings) -> Result<(), LinkError> {
    let missing =
        |setting, what: String, remedy: &str| Err(LinkError::Missing { setting, what, remedy: remedy.into() });
    if let Some(tunnel) = &link.tunnel
        && !SUITES.iter().any(|suite| suite.name == *tunnel)
    {
        let names: Vec<&str> = SUITES.iter().map(|suite| suite.name).collect();
        let remedy = format!("available: {}", names.join(", "));
        return missing("link.tunnel", format!("unknown tunnel \"{tunnel}\""), &remedy);
    }
    check_namespaces("[link]", "leave the section [link] and recorder.hosts out")?;
    check_program("ip", "[link]")?;
    check_program("tc", "link.rate")?;
    if (link.delay_s > 0.0 || link.tunnel.is_some()) && !Path::new(TUN).exists() {
        let setting = if link.tunnel.is_some() { "link.tunnel" } else { "link.delay" };
        let remedy = "load the kernel's module tun (modprobe tun), or give the container this device";
        return missing(setting, format!("there is no {TUN}"), remedy);
    }
    if link.tunnel.is_none() {
        return Ok(());
    }
    let packages = "install Debian's packages strongswan-charon, strongswan-swanctl, libcharon-extra-plugins and \
                    libstrongswan-standard-plugins (apt-get install --no-install-recommends ...)";
    let plugins = PLUGINS.map(|plugin| format!("/usr/lib/ipsec/plugins/libstrongswan-{plugin}.so"));
    let files = [CHARON.to_owned()].into_iter().chain(plugins);
    if let Some(file) = files.into_iter().find(|file| !Path::new(file).exists()) {
        return missing("link.tunnel", format!("there is no {file}"), packages);
    }
    if let Some(program) = ["swanctl", "unshare", "mount"].into_iter().find(|program| find(program).is_none()) {
        return missing("link.tunnel", format!("there is no program {program}"), packages);
    }
    match own_view() {
        Ok(()) => Ok(()),
        Err(said) => missing(
            "link.tunnel",
            format!("a tunnel's daemon cannot have a view of the file system of its own: {said}"),
            "run loadline where the root directory is a mount point (outside of a chroot, or behind mount --bind on its directory), with the right to mount",
        ),
    }
}

/// Checks that this user may make namespaces. `else_remedy` is what helps whoever may not.
pub(super) fn check_namespaces(setting: &'static str, else_remedy: &str) -> Result<(), LinkError> {
    let refused = |error| LinkError::Missing {
        setting,
        what: format!("this user may not make network namespaces ({error})"),
        remedy: format!("run loadline as root, or {else_remedy}"),
    };
    Namespace::create().map(|_| ()).map_err(refused)
}

/// Checks that a program of the package iproute2 is installed.
pub(super) fn check_program(program: &str, setting: &'static str) -> Result<(), LinkError> {
    if find(program).is_some() {
        return Ok(());
    }
    let what = format!("there is no program {program} on the PATH or in /usr/sbin");
    let remedy = "install the Debian package iproute2 (apt-get install iproute2)".to_owned();
    Err(LinkError::Missing { setting, what, remedy })
}

/// Checks that a program can be started with a private view of the file system; the error is what unshare says.
fn own_view() -> Result<(), String> {
    let program = find("unshare").unwrap_or_else(|| "unshare".into());
    let output = Command::new(program).args(PRIVATE_VIEW).arg("true").stdin(Stdio::null()).output();
    match output.map_err(|error| error.to_string())? {
        output if output.status.success() => Ok(()),
        output => Err(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
    }
}
