//! Libraries that are loaded at run time: where a system has them, and how their functions are found. Main function: [`load`].
//!
//! Invariant: a library stays loaded until the process ends, so that its functions can be called at any time.

use std::ffi::{CStr, CString, c_char, c_void};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// A pointer to a loaded library, or to an object of one.
pub(super) type Handle = *mut c_void;

/// Returns the directories in which a system has its libraries.
pub(super) fn system_directories() -> Vec<PathBuf> {
    let named = std::env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
    let of_processor = format!("/usr/lib/{}-linux-gnu", std::env::consts::ARCH);
    let usual = ["/usr/local/lib", &of_processor, "/usr/lib64", "/usr/lib"].map(PathBuf::from);
    std::env::split_paths(&named).filter(|directory| directory.is_absolute()).chain(usual).collect()
}

/// Loads the library in a file.
///
/// # Errors
/// Fails with a sentence if the file is no library.
pub(super) fn load(path: &Path) -> Result<Handle, String> {
    use std::os::unix::ffi::OsStrExt;
    let shown = path.display();
    let name = CString::new(path.as_os_str().as_bytes()).map_err(|_| format!("{shown} has a zero character"))?;
    // SAFETY: the name is a C string. Loading runs the initialisers of the library, which the user has chosen to load.
    let library = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
    if library.is_null() { Err(format!("{shown} cannot be loaded: {}", last_error())) } else { Ok(library) }
}

/// The libraries of a kind that this process has loaded, by their files.
#[derive(Debug)]
pub(super) struct Loaded<L: 'static>(Mutex<Vec<(PathBuf, &'static L)>>);

impl<L> Loaded<L> {
    pub(super) const fn new() -> Self {
        Loaded(Mutex::new(Vec::new()))
    }

    /// Returns the library in a file; `load` loads it if it is not loaded yet.
    ///
    /// # Errors
    /// The error of `load`.
    pub(super) fn at(&self, path: &Path, load: impl FnOnce() -> Result<L, String>) -> Result<&'static L, String> {
        let mut loaded = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, known)) = loaded.iter().find(|(known, _)| known == path) {
            return Ok(known);
        }
        let library: &'static L = Box::leak(Box::new(load()?));
        loaded.push((path.to_owned(), library));
        Ok(library)
    }
}

/// Returns the address of a function of a loaded library.
///
/// # Errors
/// Fails with the name if the library has no such function.
pub(super) fn find(library: Handle, name: &str) -> Result<Handle, String> {
    let text = CString::new(name).map_err(|error| error.to_string())?;
    // SAFETY: the library is loaded and is never unloaded; the name is a C string.
    let found = unsafe { libc::dlsym(library, text.as_ptr()) };
    if found.is_null() { Err(format!("it has no function {name}")) } else { Ok(found) }
}

/// Returns the message of the last call to the dynamic linker on this thread that failed.
fn last_error() -> String {
    // SAFETY: the message is null or a C string that lives until the next such call on this thread; it is copied before.
    unsafe { text_at(libc::dlerror()) }
}

/// Most characters of a message that are kept.
const MESSAGE_MOST: usize = 2_000;

/// Returns the start of the text at a pointer; empty for null.
///
/// # Safety
/// The pointer must be null, or point to a C string that lives until the call returns.
pub(super) unsafe fn text_at(text: *const c_char) -> String {
    if text.is_null() {
        return String::new();
    }
    // SAFETY: as the caller promises.
    let whole = unsafe { CStr::from_ptr(text) };
    let end = whole.to_bytes().len().min(4 * MESSAGE_MOST);
    String::from_utf8_lossy(&whole.to_bytes()[..end]).chars().take(MESSAGE_MOST).collect()
}

/// Defines the functions of a library that are used here, as a type `Symbols` with one field for each. Their names in the library begin with the given text. The types
/// are those of the library's C header: the caller must use no library whose functions have others.
macro_rules! symbols {
    ($prefix:literal; $($name:ident($($argument:ty),*) $(-> $result:ty)?;)*) => {
        /// The functions of a loaded library, without the common start of their names.
        #[derive(Debug)]
        pub struct Symbols {
            $(pub $name: unsafe extern "C" fn($($argument),*) $(-> $result)?,)*
        }

        impl Symbols {
            /// Finds all functions in a loaded library.
            fn find(library: $crate::database::loading::Handle) -> Result<Self, String> {
                Ok(Symbols {
                    $($name: {
                        let found = $crate::database::loading::find(library, concat!($prefix, stringify!($name)))?;
                        // SAFETY: the function of this name has these arguments and this result in every library that is used: the module that names the functions says how
                        // that is made sure.
                        unsafe {
                            std::mem::transmute::<
                                *mut std::ffi::c_void,
                                unsafe extern "C" fn($($argument),*) $(-> $result)?,
                            >(found)
                        }
                    },)*
                })
            }
        }
    };
}

pub(super) use symbols;
