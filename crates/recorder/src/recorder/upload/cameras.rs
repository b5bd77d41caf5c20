//! Cameras that may send blocks, and their passwords. Main type: [`Cameras`].
//!
//! Invariant: without a list of cameras everybody is admitted, and then only loopback addresses listen.

use std::collections::HashMap;
use std::net::IpAddr;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant};

use ring::hmac;
use ring::rand::SystemRandom;
use tokio::sync::Semaphore;

use super::guesses::Guesses;
use super::password::Hashed;
use crate::file;
use crate::recorder::inbox::check_camera;

/// Passwords that are hashed at a time: guessing leaves most of the machine to other work.
const HASHING_MAX: usize = 1;

/// The outcome of a login.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Login {
    /// The camera is known, and this is its password.
    Known,
    /// The camera is not known, or this is not its password.
    Unknown,
    /// Too many logins from this address wait already.
    TooMany,
}

/// The list of cameras.
#[derive(Debug)]
pub struct CameraList {
    /// The password hashes by camera; `None` if everybody is admitted.
    known: Option<HashMap<String, Arc<Hashed>>>,
    /// Hashed instead of the password of an unknown camera, so that the time reveals nothing.
    nobody: Arc<Hashed>,
}

impl CameraList {
    /// Reads the list of cameras, one per line: `camera hash`; lines that begin with `#` are comments.
    ///
    /// # Errors
    /// A sentence with file, line and remedy.
    pub fn read(path: Option<&Path>) -> Result<Self, String> {
        let known = path.map(|path| {
            let unreadable = |error| format!("{} cannot be read: {error}", path.display());
            let text = file::read_text(path, file::MADE_MOST).map_err(unreadable)?;
            read_list(&text).map_err(|sentence| format!("{}:{sentence}", path.display()))
        });
        Self::new(known.transpose().map_err(|sentence| format!("intake.blocks.users: {sentence}"))?)
    }

    fn new(known: Option<HashMap<String, Arc<Hashed>>>) -> Result<Self, String> {
        // Uses as many rounds as the others.
        let nobody = known.iter().flat_map(HashMap::values).next().cloned();
        let nobody = match nobody {
            Some(hashed) => hashed,
            // Nothing is compared where everybody is admitted.
            None => Arc::new(Hashed::with_rounds("", 1)?),
        };
        Ok(CameraList { known, nobody })
    }
}

/// Cameras and their passwords.
#[derive(Debug)]
pub struct Cameras {
    list: RwLock<Arc<CameraList>>,
    /// Marks of passwords that were right, under a key that dies with this process: hashing is slow by intention, and a camera logs in often.
    right: Mutex<HashMap<String, hmac::Tag>>,
    key: hmac::Key,
    guesses: Mutex<Guesses>,
    hashing: Arc<Semaphore>,
    since: Instant,
}

impl Cameras {
    /// Creates the cameras of a list.
    ///
    /// # Errors
    /// A sentence, when the system gives no random numbers.
    pub fn new(list: CameraList) -> Result<Self, String> {
        let no_random = |_| "the system gives no random numbers".to_owned();
        Ok(Cameras {
            list: RwLock::new(Arc::new(list)),
            right: Mutex::default(),
            key: hmac::Key::generate(hmac::HMAC_SHA256, &SystemRandom::new()).map_err(no_random)?,
            guesses: Mutex::default(),
            hashing: Arc::new(Semaphore::new(HASHING_MAX)),
            since: Instant::now(),
        })
    }

    /// Replaces the list for later logins.
    pub fn renew(&self, list: CameraList) {
        let mut right = self.right.lock().unwrap_or_else(PoisonError::into_inner);
        *self.list.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(list);
        right.clear();
    }

    fn list(&self) -> Arc<CameraList> {
        Arc::clone(&self.list.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns whether everybody is admitted without a password.
    pub fn is_open(&self) -> bool {
        self.list().known.is_none()
    }

    /// Checks a password, after a pause if there were wrong ones.
    pub async fn login(&self, camera: &str, password: &str, from: IpAddr) -> Login {
        let list = self.list();
        let Some(known) = &list.known else {
            return if check_camera(camera).is_ok() { Login::Known } else { Login::Unknown };
        };
        let marked = format!("{camera}\0{password}");
        if self.was_right(camera, &marked) {
            return Login::Known;
        }
        let Ok(asked) = Asked::new(self, from) else { return Login::TooMany };
        tokio::time::sleep(asked.wait).await;
        let hashed = known.get(camera);
        let (compared, given) = (Arc::clone(hashed.unwrap_or(&list.nobody)), password.to_owned());
        let Ok(turn) = Arc::clone(&self.hashing).acquire_owned().await else { return Login::Unknown };
        // Another connection of the camera may have proved it meanwhile.
        if self.was_right(camera, &marked) {
            asked.settle(true);
            return Login::Known;
        }
        let is_same = tokio::task::spawn_blocking(move || {
            let _turn = turn;
            compared.is(&given)
        });
        let is_right = is_same.await.unwrap_or(false) && hashed.is_some();
        asked.settle(is_right);
        if !is_right {
            return Login::Unknown;
        }
        let tag = hmac::sign(&self.key, marked.as_bytes());
        let mut right = self.right.lock().unwrap_or_else(PoisonError::into_inner);
        // A new list may contain another password by now.
        if Arc::ptr_eq(&list, &self.list()) {
            right.insert(camera.to_owned(), tag);
        }
        Login::Known
    }

    /// Returns whether this was found to be the camera's password before.
    fn was_right(&self, camera: &str, marked: &str) -> bool {
        let right = self.right.lock().unwrap_or_else(PoisonError::into_inner);
        right.get(camera).is_some_and(|tag| hmac::verify(&self.key, marked.as_bytes(), tag.as_ref()).is_ok())
    }

    fn now(&self) -> Duration {
        self.since.elapsed()
    }
}

/// A password that waits to be checked; if its login is dropped before, it counts as wrong.
struct Asked<'a> {
    cameras: &'a Cameras,
    from: IpAddr,
    wait: Duration,
    was_right: bool,
}

impl<'a> Asked<'a> {
    fn new(cameras: &'a Cameras, from: IpAddr) -> Result<Self, ()> {
        let wait = cameras.guesses.lock().unwrap_or_else(PoisonError::into_inner).ask(from, cameras.now())?;
        Ok(Asked { cameras, from, wait, was_right: false })
    }

    fn settle(mut self, was_right: bool) {
        self.was_right = was_right;
    }
}

impl Drop for Asked<'_> {
    fn drop(&mut self) {
        let mut guesses = self.cameras.guesses.lock().unwrap_or_else(PoisonError::into_inner);
        guesses.settle(self.from, self.cameras.now(), self.was_right);
    }
}

fn read_list(text: &str) -> Result<HashMap<String, Arc<Hashed>>, String> {
    let mut known = HashMap::new();
    for (number, line) in text.lines().enumerate() {
        let (number, line) = (number + 1, line.trim());
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let Some((camera, hash)) = line.split_once(char::is_whitespace) else {
            return Err(format!(
                "{number}: the line must be a camera and the hash of its password, with a space between"
            ));
        };
        check_camera(camera).map_err(|error| format!("{number}: {error}"))?;
        let hashed = Hashed::read(hash.trim()).map_err(|sentence| format!("{number}: camera {camera} {sentence}"))?;
        if known.insert(camera.to_owned(), Arc::new(hashed)).is_some() {
            return Err(format!("{number}: camera {camera} stands twice; remove one of the lines"));
        }
    }
    if known.is_empty() {
        return Err("1: there is no camera in it; add a line for each, as loadline password prints it".to_owned());
    }
    Ok(known)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

    fn run(test: impl Future<Output = ()>) {
        tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(test);
    }

    fn hashed(password: &str) -> Hashed {
        Hashed::with_rounds(password, 1_000).unwrap()
    }

    fn list_of(text: &str) -> CameraList {
        CameraList::new(Some(read_list(text).unwrap())).unwrap()
    }

    fn cameras() -> Cameras {
        let text = format!("# two\n\na {}\nb\t{}\n", hashed("one").text(), hashed("two").text());
        Cameras::new(list_of(&text)).unwrap()
    }

    #[test]
    fn a_camera_is_known_by_its_own_password_only() {
        run(async {
            let cameras = cameras();
            // The second time by the mark.
            for _ in 0..2 {
                assert_eq!(cameras.login("a", "one", HERE).await, Login::Known);
                assert_eq!(cameras.login("b", "two", HERE).await, Login::Known);
            }
            assert_eq!(cameras.login("a", "two", HERE).await, Login::Unknown);
            assert_eq!(cameras.login("c", "one", HERE).await, Login::Unknown);
            assert!(!cameras.is_open());
        });
    }

    #[test]
    fn another_list_holds_for_every_login_behind_it() {
        run(async {
            let cameras = cameras();
            assert_eq!(cameras.login("a", "one", HERE).await, Login::Known);
            cameras.renew(list_of(&format!("a {}\nc {}\n", hashed("new").text(), hashed("three").text())));
            assert_eq!(cameras.login("a", "new", HERE).await, Login::Known);
            assert_eq!(cameras.login("c", "three", HERE).await, Login::Known);
            assert_eq!(cameras.login("a", "one", HERE).await, Login::Unknown, "what was right is right no more");
            assert_eq!(cameras.login("b", "two", HERE).await, Login::Unknown);
        });
    }

    #[test]
    fn a_camera_that_is_not_there_has_no_password_that_fits() {
        run(async {
            // The hash that is compared instead is that of a camera.
            for password in ["one", "two", ""] {
                assert_eq!(cameras().login("nobody", password, HERE).await, Login::Unknown);
            }
        });
    }

    #[test]
    fn many_guesses_at_a_time_are_refused_and_a_camera_that_was_known_is_not_kept_waiting() {
        run(async {
            let cameras = Arc::new(cameras());
            assert_eq!(cameras.login("a", "one", HERE).await, Login::Known);
            let guess = |number: u32| {
                let cameras = Arc::clone(&cameras);
                tokio::spawn(async move { cameras.login("a", &number.to_string(), HERE).await })
            };
            for number in 0..3 {
                assert_eq!(guess(number).await.unwrap(), Login::Unknown);
            }
            let guesses: Vec<_> = (0..20).map(guess).collect();
            let refused = || guesses.iter().filter(|guess| guess.is_finished()).count();
            while refused() < 16 {
                tokio::task::yield_now().await;
            }
            // The first of the others waits for half a second.
            assert_eq!(refused(), 16);
            guesses.iter().for_each(tokio::task::JoinHandle::abort);
            assert_eq!(cameras.login("a", "one", HERE).await, Login::Known);
        });
    }

    #[test]
    fn many_connections_of_cameras_behind_one_router_log_in_at_once() {
        run(async {
            let cameras = Arc::new(cameras());
            let login = |number: u32| {
                let cameras = Arc::clone(&cameras);
                let (camera, password) = if number.is_multiple_of(2) { ("a", "one") } else { ("b", "two") };
                tokio::spawn(async move { cameras.login(camera, password, HERE).await })
            };
            let logins: Vec<_> = (0..50).map(login).collect();
            for login in logins {
                assert_eq!(login.await.unwrap(), Login::Known);
            }
        });
    }

    #[test]
    fn what_is_wrong_with_the_list_is_said_with_its_line() {
        let hash = hashed("x").text();
        for (text, says) in [
            ("a".to_owned(), "1: the line must be"),
            (format!("# c\na {hash}\na {hash}"), "3: camera a stands twice"),
            (format!("../a {hash}"), "1: camera name"),
            ("a secret".to_owned(), "1: camera a is no hash"),
            ("# nobody".to_owned(), "1: there is no camera"),
        ] {
            let sentence = read_list(&text).unwrap_err();
            assert!(sentence.starts_with(says) && !sentence.contains("secret"), "{sentence}");
        }
    }
}
