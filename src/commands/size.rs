//! `loadline size`: how many sources a server carries, which resource limits it, and what a number of sources needs.
//!
//! Main function: [`run`]. Invariant: the arithmetic is in [`crate::sizing`]; this module reads arguments and writes text.

use serde::Serialize;
use serde_json::{Value, json};

use super::output::{print, print_json, table};
use super::size_run::{SizeNote, load_line_of};
use super::{Failure, Refusal, Status};
use crate::cli::size::SizeArguments;
use crate::fault::{Fault, fault};
use crate::sizing::{Figure, Limit, Resource, Server, SourceKind, needs, size};
use crate::units::{parse_bit_rate, parse_bytes, parse_duration, show_bit_rate, show_bytes, show_number, show_seconds};

/// Share of a source's data that must pass its link for the source to count as carried.
const CARRIED: f64 = 0.98;

/// The result of a sizing.
#[derive(Debug, Serialize)]
struct Sizing {
    source: Value,
    limits: Vec<Value>,
    bottleneck: Option<&'static str>,
    /// Number of whole sources that the bottleneck carries.
    sources: Option<u64>,
    sources_ci95: Option<[u64; 2]>,
    /// Resources for a given number of sources; only with --sources.
    #[serde(skip_serializing_if = "Option::is_none")]
    needs: Option<Value>,
    notes: Vec<SizeNote>,
}

/// Sizes a server for the sources of the arguments.
///
/// # Errors
/// [`Failure::Usage`] if an argument is wrong or nothing is known about the server.
pub fn run(arguments: &SizeArguments, is_json: bool) -> Result<Status, Failure> {
    let source = source(arguments)?;
    let mut notes = Vec::new();
    let server = server(arguments, &mut notes)?;
    let limits = size(&source, &server);
    if limits.is_empty() && arguments.link.is_none() {
        return Err(Failure::refused(fault!(
            "nothing is told of the server"; "name at least one of --server-link, --disk, --processing, --load-line, --run"
        )));
    }
    if source.carried_share() < 1.0 {
        notes.push(SizeNote::LinkTooSlow {
            made_bits_per_s: source.made_bits_per_s(),
            carried_bits_per_s: source.offered_bits_per_s(),
            carried_share: source.carried_share(),
        });
    }
    if limits.is_empty() {
        notes.push(SizeNote::LinksOnly {});
    }
    let wanted = arguments.sources.map(|sources| positive("--sources", sources)).transpose()?;
    let sizing = Sizing {
        source: json!({
            "blocks_per_s": source.blocks_per_s,
            "block_bytes": source.block_bytes,
            "made_bits_per_s": source.made_bits_per_s(),
            "offered_bits_per_s": source.offered_bits_per_s(),
            "carried_share": source.carried_share(),
        }),
        limits: limits.iter().map(limit_json).collect(),
        bottleneck: limits.first().map(|limit| limit.resource.name()),
        sources: limits.first().map(|limit| limit.sources.value as u64),
        sources_ci95: limits.first().map(|limit| [limit.sources.low as u64, limit.sources.high as u64]),
        needs: wanted.map(|wanted| needs_json(&source, &limits, wanted)),
        notes,
    };
    if is_json {
        print_json(&sizing)?;
    } else {
        print(&text_of(&sizing, &source, &limits, arguments, wanted))?;
    }
    Ok(Status::Valid)
}

fn source(arguments: &SizeArguments) -> Result<SourceKind, Failure> {
    let every = parse_duration(&arguments.every).map_err(|why| Failure::refused(Refusal::about("--every", why)))?;
    let every_s = positive("--every", every.as_secs_f64())?;
    let bytes = parse_bytes(&arguments.block).map_err(|why| Failure::refused(Refusal::about("--block", why)))?;
    let link = arguments.link.as_ref().map(|text| {
        let rate = parse_bit_rate(text).map_err(|why| Failure::refused(Refusal::about("--link", why)))?;
        positive("--link", rate)
    });
    Ok(SourceKind {
        blocks_per_s: positive("--blocks", arguments.blocks)? / every_s,
        block_bytes: positive("--block", bytes as f64)?,
        link_bits_per_s: link.transpose()?,
    })
}

fn server(arguments: &SizeArguments, notes: &mut Vec<SizeNote>) -> Result<Server, Failure> {
    let bytes = |text: &str| parse_bytes(text).map(|bytes| bytes as f64);
    let seconds = |text: &str| parse_duration(text).map(|time| time.as_secs_f64());
    let number = |text: &str| {
        text.parse::<f64>().map_err(|_| fault!("\"{text}\" is not a number"; "write operations per second, as in 800"))
    };
    let load_line_per_s = match &arguments.run {
        Some(run) => Some(load_line_of(run, &arguments.levels, notes)?),
        None => figure("--load-line", arguments.load_line.as_deref(), number)?,
    };
    let used_share = positive("--use-at-most", arguments.use_at_most)?;
    if used_share > 1.0 {
        return Err(Failure::refused(Refusal::at(
            "--use-at-most",
            format!("{used_share} is more than all"),
            "write a share, as in 0.8",
        )));
    }
    Ok(Server {
        link_bits_per_s: figure("--server-link", arguments.server_link.as_deref(), parse_bit_rate)?,
        disk_bytes_per_s: figure("--disk", arguments.disk.as_deref(), bytes)?,
        writes_per_byte: positive("--writes", arguments.writes)?,
        processing_s: figure("--processing", arguments.processing.as_deref(), seconds)?,
        cores: positive("--cores", arguments.cores)?,
        load_line_per_s,
        operations_per_block: positive("--operations", arguments.operations)?,
        used_share,
    })
}

fn positive(option: &str, value: f64) -> Result<f64, Failure> {
    if value > 0.0 && value.is_finite() {
        return Ok(value);
    }
    Err(Failure::refused(Refusal::at(option, format!("{value} is not possible"), "it must be more than zero")))
}

/// Reads a figure, or its interval as `low..high`, whose middle is then the figure.
fn figure(
    option: &str,
    text: Option<&str>,
    read: impl Fn(&str) -> Result<f64, Fault>,
) -> Result<Option<Figure>, Failure> {
    let Some(text) = text else { return Ok(None) };
    let read = |text: &str| {
        let value = read(text.trim()).map_err(|why| Failure::refused(Refusal::about(option, why)))?;
        positive(option, value)
    };
    let Some((low, high)) = text.split_once("..") else { return Ok(Some(Figure::exact(read(text)?))) };
    let (low, high) = (read(low)?, read(high)?);
    let figure = Figure::between((low + high) / 2.0, low, high);
    let wrong = || {
        Failure::refused(Refusal::at(option, format!("\"{text}\" begins above its end"), "write the lower one first"))
    };
    figure.map(Some).ok_or_else(wrong)
}

fn limit_json(limit: &Limit) -> Value {
    let unit = match limit.resource {
        Resource::Link => "bits_per_s",
        Resource::Disk => "bytes_per_s",
        Resource::Processing => "cores",
        Resource::Database => "operations_per_s",
    };
    json!({
        "resource": limit.resource.name(),
        "unit": unit,
        "usable": limit.usable.value,
        "usable_ci95": [limit.usable.low, limit.usable.high],
        "per_source": limit.per_source.value,
        "sources": limit.sources.value,
        "sources_ci95": [limit.sources.low, limit.sources.high],
    })
}

fn needs_json(source: &SourceKind, limits: &[Limit], wanted: f64) -> Value {
    let of = needs(limits, wanted);
    let resources: Vec<Value> = of
        .iter()
        .zip(limits)
        .map(|((resource, needed), limit)| {
            json!({
                "resource": resource.name(),
                "servers": needed.value,
                "servers_ci95": [needed.low, needed.high],
                "total": limit.per_source.value * wanted,
            })
        })
        .collect();
    json!({
        "sources": wanted,
        "offered_bits_per_s": wanted * source.offered_bits_per_s(),
        "blocks_per_s": wanted * source.offered_blocks_per_s(),
        "servers": servers(limits, wanted, |figure| figure.value),
        // The upper end of every interval is on the safe side.
        "servers_safe": servers(limits, wanted, |figure| figure.high),
        "resources": resources,
    })
}

/// Returns the number of whole servers, by the resource that needs most.
fn servers(limits: &[Limit], wanted: f64, end: fn(Figure) -> f64) -> u64 {
    let most = needs(limits, wanted).into_iter().map(|(_, needed)| end(needed)).fold(0.0, f64::max);
    // A rounding error is not a further server.
    (most - 1e-9).ceil().max(0.0) as u64
}

fn text_of(
    sizing: &Sizing,
    source: &SourceKind,
    limits: &[Limit],
    arguments: &SizeArguments,
    wanted: Option<f64>,
) -> String {
    let mut out = format!(
        "a source: {} blocks/s of {}, {}",
        show_number(source.blocks_per_s),
        show_bytes(source.block_bytes),
        show_bit_rate(source.made_bits_per_s()),
    );
    if let Some(link) = source.link_bits_per_s {
        out += &format!(" over {}: {} arrive", show_bit_rate(link), show_bit_rate(source.offered_bits_per_s()));
    }
    out += "\n\n";
    let mut rows = vec![["resource", "usable", "a source takes", "sources", "interval"].map(str::to_owned).to_vec()];
    rows.extend(limits.iter().map(|limit| {
        let show = |value| show_amount(limit.resource, value);
        vec![
            limit.resource.name().to_owned(),
            show(limit.usable.value),
            show(limit.per_source.value),
            show_number(limit.sources.value),
            format!("[{}, {}]", show_number(limit.sources.low), show_number(limit.sources.high)),
        ]
    }));
    if let (Some(first), Some(sources)) = (limits.first(), sizing.sources) {
        out += &table(rows);
        let [low, high] = sizing.sources_ci95.unwrap_or([sources; 2]);
        // A server is credited only with the lower end of its interval; the middle is too high as often as not.
        let takes = if low == high {
            format!("takes {sources} such sources")
        } else {
            format!("takes {low} such sources for certain and at most {high}")
        };
        out += &format!(
            "\nThis server {takes}; the bottleneck is the {}{}.\n",
            first.resource.name(),
            if first.resource == Resource::Database {
                String::new()
            } else {
                format!(", of which {:.0} % may be used", 100.0 * arguments.use_at_most)
            }
        );
    }
    if source.carried_share() < CARRIED {
        out += &format!(
            "Each of them is overloaded whatever the server takes: its own link carries {:.0} % of what it makes, and the rest never arrives. \
             Make less, or give it a link of {}.\n",
            100.0 * source.carried_share(),
            show_bit_rate(source.made_bits_per_s())
        );
    }
    if let Some(wanted) = wanted {
        out += &needs_text(source, limits, wanted);
    }
    out + &sizing.notes.iter().map(|note| format!("- {note}\n")).collect::<String>()
}

fn needs_text(source: &SourceKind, limits: &[Limit], wanted: f64) -> String {
    let total = show_bit_rate(wanted * source.offered_bits_per_s());
    let blocks = show_number(wanted * source.offered_blocks_per_s());
    let mut out = format!("\n{} sources offer {total}, {blocks} blocks/s.", show_number(wanted));
    let Some(first) = limits.first() else { return out + "\n" };
    let (likely, safe) =
        (servers(limits, wanted, |figure| figure.value), servers(limits, wanted, |figure| figure.high));
    let s = if likely == 1 { "" } else { "s" };
    out += &format!(" They need {likely} such server{s}");
    if safe != likely {
        out += &format!(" ({safe} to be on the safe side of the interval)");
    }
    out += &format!(", because of the {}; on one server they would need:\n", first.resource.name());
    for limit in limits {
        let needed = show_amount(limit.resource, limit.per_source.value * wanted);
        out += &format!(
            "  {:<12} {needed}, here it is {}\n",
            limit.resource.name(),
            show_amount(limit.resource, limit.usable.value)
        );
    }
    out
}

fn show_amount(resource: Resource, value: f64) -> String {
    match resource {
        Resource::Link => show_bit_rate(value),
        Resource::Disk => format!("{}/s", show_bytes(value)),
        Resource::Processing if value < 1.0 => format!("{} of a core per second", show_seconds(value)),
        Resource::Processing => format!("{} cores", show_number(value)),
        Resource::Database => format!("{} operations/s", show_number(value)),
    }
}
