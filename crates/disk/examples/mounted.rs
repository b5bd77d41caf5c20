//! Mounts a disk until its standard input ends: `mounted DIRECTORY`, which holds `below` and `disk` then.

use std::io::Read;
use std::path::Path;

use loadline_disk::{Disk, Mounted};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let directory = std::env::args().nth(1).ok_or("name a directory")?;
    let directory = Path::new(&directory);
    let _mounted = Mounted::new(Disk::new(&directory.join("below"))?, &directory.join("disk"))?;
    std::io::stdin().read_to_end(&mut Vec::new())?;
    Ok(())
}
