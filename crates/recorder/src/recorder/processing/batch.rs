//! Opening the blocks of a batch, each on its own, on as many threads as there are workers. Main function: [`open_all`].

use std::sync::atomic::{AtomicUsize, Ordering};

use ring::digest::{Context, SHA256, digest};

use super::dates::Dates;
use super::images::{Image, ImageError, Images};
use crate::block::{Opener, Signers};
use crate::data::violation::Violation;
use crate::recorder::inbox::Waiting;

/// The result of opening a block.
#[derive(Debug)]
pub(super) enum Judged {
    /// Signed, whole and well-formed.
    Good(Box<Good>),
    /// To be quarantined; the reason.
    Bad(String),
    /// Not readable at the moment, or gone; the reason.
    Unread(String),
}

/// The content of a good block.
#[derive(Debug)]
pub(super) struct Good {
    pub(super) violation: Violation,
    /// SHA-256 over the record and the image's hash, which distinguishes a replay from another record under the same number.
    pub(super) digest: String,
    pub(super) image_sha256: String,
    pub(super) image_bytes: u64,
    pub(super) image: Image,
    /// Why it is not stored unless it was stored before: its date. `None` if the date is acceptable.
    pub(super) untimely: Option<String>,
}

/// The rules for judging blocks: the keys, the bounds of dates, and the present time.
pub(super) struct Rules<'a> {
    pub(super) signers: &'a Signers,
    pub(super) dates: Dates,
    pub(super) now_ns: i64,
}

/// Opens all blocks; the results are in their order.
pub(super) fn open_all(
    waiting: &[Waiting],
    openers: &mut [Opener],
    rules: &Rules<'_>,
    images: &Images,
) -> Result<Vec<Judged>, ImageError> {
    let next = AtomicUsize::new(0);
    let work = |opener: &mut Opener| {
        let mut buffer = Vec::new();
        let mut judged = Vec::new();
        loop {
            let place = next.fetch_add(1, Ordering::Relaxed);
            let Some(waiting) = waiting.get(place) else { return Ok(judged) };
            judged.push((place, open(waiting, opener, rules, images, &mut buffer)?));
        }
    };
    let Some((own, others)) = openers.split_first_mut() else { return Ok(Vec::new()) };
    let mut all: Vec<(usize, Judged)> = std::thread::scope(|scope| {
        // If the system gives no thread, the other threads do its work.
        let begin =
            |opener| std::thread::Builder::new().name("opening".to_owned()).spawn_scoped(scope, || work(opener));
        let threads: Vec<_> = others.iter_mut().filter_map(|opener| begin(opener).ok()).collect();
        let mut all = work(own)?;
        for thread in threads {
            let ended = thread.join().unwrap_or_else(|_| Err(ImageError::Broken("a worker panicked".to_owned())));
            all.extend(ended?);
        }
        Ok(all)
    })?;
    all.sort_by_key(|(place, _)| *place);
    Ok(all.into_iter().map(|(_, judged)| judged).collect())
}

fn open(
    waiting: &Waiting,
    opener: &mut Opener,
    rules: &Rules<'_>,
    images: &Images,
    buffer: &mut Vec<u8>,
) -> Result<Judged, ImageError> {
    if let Err(error) = waiting.read(buffer) {
        return Ok(Judged::Unread(error.to_string()));
    }
    let opened = match opener.open(buffer, rules.signers, &waiting.camera) {
        Ok(opened) => opened,
        Err(error) => return Ok(Judged::Bad(error.to_string())),
    };
    let image_sha256 = digest(&SHA256, opened.image);
    let mut whole = Context::new(&SHA256);
    whole.update(opened.record);
    whole.update(image_sha256.as_ref());
    let image = images.take(opened.image)?;
    Ok(Judged::Good(Box::new(Good {
        digest: hex(whole.finish().as_ref()),
        image_sha256: hex(image_sha256.as_ref()),
        image_bytes: opened.image.len() as u64,
        image,
        untimely: rules.dates.refuse(opened.violation.time_ns, rules.now_ns),
        violation: opened.violation,
    })))
}

/// Returns bytes as hexadecimal digits.
pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
