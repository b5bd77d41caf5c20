//! Counts what is allocated and what is done. Main function: [`counted`].

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The system's allocator, counted.
struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

static HELD: AtomicU64 = AtomicU64::new(0);
static MOST: AtomicU64 = AtomicU64::new(0);
static ALL: AtomicU64 = AtomicU64::new(0);
static BRANCHES: AtomicU64 = AtomicU64::new(0);

fn took(bytes: usize) {
    let held = HELD.fetch_add(bytes as u64, Relaxed) + bytes as u64;
    MOST.fetch_max(held, Relaxed);
    ALL.fetch_add(bytes as u64, Relaxed);
}

// SAFETY: all memory comes from the system's allocator and goes back to it, with the layouts that were given.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        took(layout.size());
        // SAFETY: the caller's own promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        took(layout.size());
        // SAFETY: the caller's own promises.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        HELD.fetch_sub(layout.size() as u64, Relaxed);
        // SAFETY: the caller's own promises.
        unsafe { System.dealloc(memory, layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // A larger piece is made before the smaller one is given back.
        took(size);
        HELD.fetch_sub(layout.size() as u64, Relaxed);
        // SAFETY: the caller's own promises.
        unsafe { System.realloc(memory, layout, size) }
    }
}

/// The compiler calls it at every branch of loadline's own code (`-sanitizer-coverage-trace-pc`).
// SAFETY: no other code of the program has this name, and the call has neither parameters nor a result.
#[unsafe(no_mangle)]
extern "C" fn __sanitizer_cov_trace_pc() {
    BRANCHES.store(BRANCHES.load(Relaxed) + 1, Relaxed);
}

/// What something has cost.
#[derive(Debug, Clone, Copy)]
pub struct Cost {
    /// Bytes held at a time, at most, beside what was there before.
    pub held: u64,
    /// Bytes allocated in all.
    pub allocated: u64,
    /// Branches taken.
    pub branches: u64,
}

/// What it costs to do something.
pub fn counted(what: impl FnOnce()) -> Cost {
    let (before, all, branches) = (HELD.load(Relaxed), ALL.load(Relaxed), BRANCHES.load(Relaxed));
    MOST.store(before, Relaxed);
    what();
    Cost {
        held: MOST.load(Relaxed).saturating_sub(before),
        allocated: ALL.load(Relaxed) - all,
        branches: BRANCHES.load(Relaxed) - branches,
    }
}
