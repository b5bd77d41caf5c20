//! Tells whether a disk can be mounted here: ends with 0 where it can, and says why not where it cannot.

use std::process::ExitCode;

use loadline_disk::{Disk, Mounted};

fn main() -> ExitCode {
    let directory = std::env::temp_dir().join(format!("loadline-can-mount-{}", std::process::id()));
    let tried = Disk::new(&directory.join("below"))
        .map_err(|error| error.to_string())
        .and_then(|disk| Mounted::new(disk, &directory.join("disk")).map_err(|error| error.to_string()))
        .and_then(|mounted| mounted.unmount().map_err(|error| error.to_string()));
    // An empty directory that stays behind harms nobody.
    let _ = std::fs::remove_dir_all(&directory);
    match tried {
        Ok(_) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("{why}");
            ExitCode::FAILURE
        }
    }
}
