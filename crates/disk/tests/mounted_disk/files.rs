//! What programs do to files and names comes out as on any other file system, and faults reach the program that asked.

use std::ffi::CString;
use std::fs::{self, File};
use std::io::{ErrorKind, Read, Seek, SeekFrom, Write};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt, symlink};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use loadline_base::random::Stream;
use loadline_disk::{Disk, Faults, Mounted, Plan, When};

use super::Directory;

fn mounted(directory: &Directory) -> Mounted {
    Mounted::new(Disk::new(&directory.0.join("below")).unwrap(), &directory.0.join("disk")).unwrap()
}

/// One random step, the same in two places; what came of it.
fn step(place: &Path, mut random: Stream) -> Result<Vec<u8>, ErrorKind> {
    let names = ["a", "b", "directory", "directory/c", "directory/d"];
    let path = place.join(names[random.below(5) as usize]);
    let other = place.join(names[random.below(5) as usize]);
    let offset = random.below(20_000);
    let bytes: Vec<u8> = (0..random.below(6000)).map(|_| random.word() as u8).collect();
    let of_error = |error: std::io::Error| error.kind();
    let nothing = |()| Vec::new();
    match random.below(14) {
        0 => fs::create_dir(&path).map(nothing).map_err(of_error),
        1 => fs::remove_dir(&path).map(nothing).map_err(of_error),
        2 => fs::remove_file(&path).map(nothing).map_err(of_error),
        3 => fs::rename(&path, &other).map(nothing).map_err(of_error),
        4 => fs::hard_link(&path, &other).map(nothing).map_err(of_error),
        5 => symlink(&other, &path).map(nothing).map_err(of_error),
        6 => fs::write(&path, &bytes).map(nothing).map_err(of_error),
        7 => File::options()
            .append(true)
            .open(&path)
            .and_then(|mut file| file.write_all(&bytes))
            .map(nothing)
            .map_err(of_error),
        8 => {
            File::options().write(true).open(&path).and_then(|file| file.set_len(offset)).map(nothing).map_err(of_error)
        }
        9 => fs::set_permissions(&path, PermissionsExt::from_mode(0o600 | offset as u32 & 0o77))
            .map(nothing)
            .map_err(of_error),
        10 => File::open(&path).and_then(|file| file.sync_all()).map(nothing).map_err(of_error),
        11 | 12 => {
            let file = File::options().write(true).create(true).truncate(false).open(&path).map_err(of_error)?;
            file.write_all_at(&bytes, offset).map(nothing).map_err(of_error)
        }
        _ => fs::read(&path).map_err(of_error),
    }
}

/// Everything that is below a place: names, kinds, rights, links and contents.
fn all(place: &Path) -> Vec<(String, u32, u64, Vec<u8>)> {
    let mut found = Vec::new();
    let mut waiting = vec![place.to_owned()];
    while let Some(directory) = waiting.pop() {
        for entry in fs::read_dir(&directory).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(place).unwrap().to_string_lossy().into_owned();
            let known = path.symlink_metadata().unwrap();
            let links = if known.is_dir() { 0 } else { known.nlink() };
            let content = if known.is_dir() {
                waiting.push(path);
                Vec::new()
            } else if known.is_symlink() {
                fs::read_link(&path).unwrap().strip_prefix(place).unwrap().as_os_str().as_bytes().to_vec()
            } else {
                fs::read(&path).unwrap()
            };
            found.push((name, known.mode(), links, content));
        }
    }
    found.sort();
    found
}

#[test]
fn three_thousand_random_steps_come_out_as_on_the_machines_own_disk() {
    let directory = Directory::new("steps");
    let mounted = mounted(&directory);
    let (ours, own) = (directory.0.join("disk"), directory.0.join("own"));
    fs::create_dir(&own).unwrap();
    for number in 0..3000 {
        let random = || Stream::new(11, number, 0);
        assert_eq!(step(&ours, random()), step(&own, random()), "step {number}");
        if number % 100 == 0 {
            assert_eq!(all(&ours), all(&own), "after step {number}");
        }
    }
    assert_eq!(all(&ours), all(&own));
    // All that is there is synced, the power goes, and all is there.
    for path in fs::read_dir(&ours).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_file()) {
        File::open(path).unwrap().sync_all().unwrap();
    }
    if let Ok(below) = fs::read_dir(ours.join("directory")) {
        for path in below.map(|entry| entry.unwrap().path()).filter(|path| path.is_file()) {
            File::open(path).unwrap().sync_all().unwrap();
        }
    }
    let before = all(&own);
    File::open(&ours).unwrap().sync_all().unwrap();
    mounted.cut_now();
    let mut disk = mounted.unmount().unwrap();
    disk.restore().unwrap();
    let mounted = Mounted::new(disk, &ours).unwrap();
    assert_eq!(all(&ours), before);
    mounted.unmount().unwrap();
}

#[test]
fn what_is_written_through_memory_is_lost_or_kept_like_all_else() {
    let directory = Directory::new("memory");
    let mounted = mounted(&directory);
    let path = directory.0.join("disk/mapped");
    let file = File::options().read(true).write(true).create_new(true).open(&path).unwrap();
    file.set_len(8192).unwrap();
    // SAFETY: the file is 8,192 bytes long and stays open; nobody else has it.
    unsafe {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let map = libc::mmap(std::ptr::null_mut(), 8192, protection, libc::MAP_SHARED, file.as_raw_fd(), 0);
        assert_ne!(map, libc::MAP_FAILED);
        let bytes = map.cast::<u8>();
        bytes.write(1);
        assert_eq!(libc::msync(map, 4096, libc::MS_SYNC), 0);
        bytes.add(4096).write(2);
        mounted.cut_now();
        mounted.release();
        libc::munmap(map, 8192);
    }
    drop(file);
    let mut disk = mounted.unmount().unwrap();
    disk.restore().unwrap();
    let mounted = Mounted::new(disk, &directory.0.join("disk")).unwrap();
    let bytes = fs::read(&path).unwrap();
    assert_eq!((bytes.len(), bytes[0], bytes[4096]), (8192, 1, 0));
    mounted.unmount().unwrap();
}

#[test]
fn what_was_there_when_the_disk_was_synced_is_there_after_a_cut() {
    let directory = Directory::new("synced");
    let mounted = mounted(&directory);
    let place = directory.0.join("disk");
    let path = place.join("mapped");
    fs::write(place.join("old"), "old").unwrap();
    let file = File::options().read(true).write(true).create_new(true).open(&path).unwrap();
    file.set_len(8192).unwrap();
    // SAFETY: the file is 8,192 bytes long and stays open; nobody else has it.
    unsafe {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let map = libc::mmap(std::ptr::null_mut(), 8192, protection, libc::MAP_SHARED, file.as_raw_fd(), 0);
        assert_ne!(map, libc::MAP_FAILED);
        let bytes = map.cast::<u8>();
        bytes.write(1);
        mounted.sync_all().unwrap();
        bytes.add(4096).write(2);
        fs::write(place.join("new"), "new").unwrap();
        mounted.cut_now();
        assert!(mounted.sync_all().is_err(), "a disk without power takes nothing");
        mounted.release();
        libc::munmap(map, 8192);
    }
    drop(file);
    let mut disk = mounted.unmount().unwrap();
    disk.restore().unwrap();
    let mounted = Mounted::new(disk, &place).unwrap();
    let bytes = fs::read(&path).unwrap();
    assert_eq!((bytes.len(), bytes[0], bytes[4096]), (8192, 1, 0));
    assert_eq!(fs::read(place.join("old")).unwrap(), b"old");
    assert!(!place.join("new").exists());
    mounted.unmount().unwrap();
}

#[test]
fn sockets_pipes_and_holes_are_what_they_are_elsewhere() {
    let directory = Directory::new("special");
    let mounted = mounted(&directory);
    let at = directory.0.join("disk");
    let listener = UnixListener::bind(at.join("socket")).unwrap();
    let talking = thread::spawn(move || listener.accept().unwrap().0.write_all(b"heard").unwrap());
    let mut heard = String::new();
    UnixStream::connect(at.join("socket")).unwrap().read_to_string(&mut heard).unwrap();
    talking.join().unwrap();
    assert_eq!(heard, "heard");

    let pipe = CString::new(at.join("pipe").as_os_str().as_bytes()).unwrap();
    // SAFETY: the path ends with a zero byte and outlives the call.
    assert_eq!(unsafe { libc::mkfifo(pipe.as_ptr(), 0o600) }, 0);

    let mut file = File::options().read(true).write(true).create_new(true).open(at.join("holes")).unwrap();
    file.write_all(&[7; 10_000]).unwrap();
    let punch = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
    // SAFETY: only numbers are passed.
    assert_eq!(unsafe { libc::fallocate(file.as_raw_fd(), punch, 100, 5000) }, 0);
    // SAFETY: as before.
    assert_eq!(unsafe { libc::posix_fallocate(file.as_raw_fd(), 0, 20_000) }, 0);
    file.seek(SeekFrom::Start(0)).unwrap();
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).unwrap();
    let expected: Vec<u8> =
        (0..20_000).map(|place| if place < 10_000 && !(100..5100).contains(&place) { 7 } else { 0 }).collect();
    assert!(bytes == expected);
    drop(file);
    mounted.unmount().unwrap();
}

#[test]
fn whoever_waits_when_the_power_goes_is_told_nothing_until_he_is_released() {
    let directory = Directory::new("waiting");
    let mounted = mounted(&directory);
    let file = File::create(directory.0.join("disk/file")).unwrap();
    mounted.disk().plan(Plan { when: When::BeforeSync(2), ..Plan::default() });
    file.write_all_at(b"kept", 0).unwrap();
    file.sync_all().unwrap();
    file.write_all_at(b"lost", 0).unwrap();
    let (tell, told) = mpsc::channel();
    let waiting = thread::spawn(move || tell.send(file.sync_all().map_err(|error| error.raw_os_error())).unwrap());
    assert!(mounted.wait_until_off(Duration::from_secs(60)));
    assert!(told.recv_timeout(Duration::from_millis(200)).is_err(), "told although there is no power");
    mounted.release();
    assert_eq!(told.recv().unwrap(), Err(Some(libc::EIO)));
    waiting.join().unwrap();
    let mut disk = mounted.unmount().unwrap();
    let lost = disk.restore().unwrap();
    assert_eq!((lost.unsynced_blocks, lost.sectors, lost.names), (1, 8, 0));
    let mounted = Mounted::new(disk, &directory.0.join("disk")).unwrap();
    assert_eq!(fs::read(directory.0.join("disk/file")).unwrap(), b"kept");
    mounted.unmount().unwrap();
}

#[test]
fn faults_reach_the_program_and_no_other_operation() {
    let directory = Directory::new("faults");
    let mounted = mounted(&directory);
    let path = directory.0.join("disk/file");
    let file = File::options().read(true).write(true).create_new(true).open(&path).unwrap();
    let code = |result: std::io::Result<()>| result.err().and_then(|error| error.raw_os_error());
    let with = |faults| mounted.disk().plan(Plan { faults, ..Plan::default() });

    with(Faults { failing_write: Some(2), ..Faults::default() });
    assert_eq!(code(file.write_all_at(&[1; 4096], 0)), None);
    assert_eq!(code(file.write_all_at(&[2; 4096], 4096)), Some(libc::EIO));
    assert_eq!(code(file.write_all_at(&[3; 4096], 4096)), None);

    with(Faults { failing_sync: Some(1), is_for_ever: true, ..Faults::default() });
    assert_eq!(code(file.sync_all()), Some(libc::EIO));
    assert_eq!(code(file.sync_data()), Some(libc::EIO));

    with(Faults { room: Some(10_000), ..Faults::default() });
    assert_eq!(code(file.write_all_at(&[4; 4096], 8192)), Some(libc::ENOSPC));
    assert_eq!(code(file.write_all_at(&[4; 1000], 8192)), None);

    with(Faults { sync_takes: Duration::from_millis(300), ..Faults::default() });
    let begun = Instant::now();
    assert_eq!(code(file.sync_all()), None);
    assert!(begun.elapsed() >= Duration::from_millis(300));
    drop(file);

    with(Faults { flips_one_in: Some(1), ..Faults::default() });
    let bytes = fs::read(&path).unwrap();
    let expected: Vec<u8> = [&[1_u8; 4096][..], &[3; 4096], &[4; 1000]].concat();
    let different: u32 = bytes.iter().zip(&expected).map(|(is, should)| (is ^ should).count_ones()).sum();
    assert!(different > 0 && bytes.len() == expected.len(), "{different}");
    assert_eq!(u64::from(different), mounted.disk().counts().flipped);
    mounted.unmount().unwrap();
}
