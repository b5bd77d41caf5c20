//! What a report costs, counted and not timed: the bytes that it allocates in all, and the most that it holds at once, may grow with the number
//! of trials, and no faster. Whatever is copied for each value of a case, or made for each pair of values or cases, shows there.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[path = "report/synthetic.rs"]
mod synthetic;

#[path = "../benches/report/shapes.rs"]
mod shapes;

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use loadline::report;
use loadline::store::Run;
use loadline::study::goal;

/// The system's memory, counted.
struct Counted;

static ALLOCATED: AtomicU64 = AtomicU64::new(0);
static HELD: AtomicU64 = AtomicU64::new(0);
static MOST: AtomicU64 = AtomicU64::new(0);

// SAFETY: every request is handed to the system's allocator as it came; counting touches no memory of it.
unsafe impl GlobalAlloc for Counted {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let bytes = layout.size() as u64;
        ALLOCATED.fetch_add(bytes, Relaxed);
        MOST.fetch_max(HELD.fetch_add(bytes, Relaxed) + bytes, Relaxed);
        // SAFETY: the caller's promises are those that the system asks for.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        HELD.fetch_sub(layout.size() as u64, Relaxed);
        // SAFETY: the pointer comes from `alloc` above, with this layout.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static COUNTED: Counted = Counted;

/// Bytes that a report on so many trials allocates, and the most that it holds at once.
fn cost(shape: &str, trials: usize) -> [f64; 2] {
    let directory = std::env::temp_dir().join(format!("loadline-report-cost-{}", std::process::id()));
    shapes::write_run(&directory, shape, trials);
    let (allocated, held) = (ALLOCATED.load(Relaxed), HELD.load(Relaxed));
    MOST.store(held, Relaxed);
    let run = Run::open(&directory).unwrap();
    let (study, environment) = (&run.file.study, &run.file.environment);
    let findings = report::analyse("cost", study, environment, &run.measurements);
    let unfolded = goal::unfold(study, &run.measurements);
    let page = report::html(&findings, &unfolded, environment, &run.measurements);
    assert!(page.contains(&format!("{} trials in the order", run.measurements.len())));
    std::fs::remove_dir_all(&directory).unwrap();
    [ALLOCATED.load(Relaxed) - allocated, MOST.load(Relaxed) - held].map(|bytes| bytes as f64)
}

/// What is asked of: many trials of few cases, many cases, and open loops at arrival rates, to which models are fitted.
const SHAPES: [&str; 5] = ["layouts", "pair", "ramp", "settings", "open"];
/// Trials of the smaller and of the larger run.
const SIZES: [usize; 2] = [120, 480];
/// How much more four times the trials may cost: what does not grow with them makes it less, logarithms a little more.
const MOST_TIMES: f64 = 4.5;

#[test]
fn the_cost_of_a_report_grows_with_its_trials_and_no_faster() {
    // One test, because all threads allocate from what is counted.
    let mut grown = Vec::new();
    for shape in SHAPES {
        let [small, large] = SIZES.map(|trials| cost(shape, trials));
        for (what, small, large) in [("allocated", small[0], large[0]), ("held", small[1], large[1])] {
            let (times, a_trial) = (large / small, large / SIZES[1] as f64 / 1e3);
            println!("{shape}: {what} {times:.2} times for 4 times the trials; {a_trial:.0} kB a trial");
            grown.extend((times > MOST_TIMES).then(|| format!("{shape}: {what} {times:.2} times")));
        }
    }
    assert!(grown.is_empty(), "{grown:?}");
}
