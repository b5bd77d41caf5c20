//! The HdrHistogram logs that YCSB writes with `hdrhistogram.fileoutput=true`: one `PREFIXREAD.hdr` for each section.
//!
//! Main function: [`read`]. Invariant: counts of all intervals are added; a line that cannot be decoded is an error.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::Deserializer;

use crate::import::source::{ImportError, SourceFile, shortened};
use crate::import::times::{Counted, us};

/// Returns the section of a log by its name, such as `x-Intended-READ.hdr`.
fn section_of(log: &SourceFile) -> Option<(&str, &str)> {
    let stem = log.stem();
    let names = super::OPERATIONS
        .iter()
        .map(|name| ("Intended-", *name))
        .chain(super::OPERATIONS.iter().map(|name| ("", *name)));
    // The longest matching name is the right one: READ-MODIFY-WRITE also ends like WRITE.
    names
        .filter_map(|(lead, name)| {
            let prefix = stem.strip_suffix(name)?.strip_suffix(lead)?;
            Some((prefix, &stem[prefix.len()..]))
        })
        .max_by_key(|(_, section)| section.len())
}

/// Returns whether a log belongs to the run of this output: it is in the same directory, and has the output's name
/// before the section or is beside the only output there.
pub fn belongs(log: &SourceFile, output: &SourceFile, outputs: &[&SourceFile]) -> bool {
    if log.directory() != output.directory() {
        return false;
    }
    let alone = outputs.iter().filter(|other| other.directory() == output.directory()).count() == 1;
    let prefix = section_of(log).map_or("", |(prefix, _)| prefix.trim_end_matches(['-', '_', '.']));
    alone || (!prefix.is_empty() && output.stem() == prefix)
}

/// Reads the section of a log and its times.
pub fn read(log: &SourceFile) -> Result<(String, Counted), ImportError> {
    let Some((_, section)) = section_of(log) else {
        let remedy = "YCSB names its logs after sections, as in READ.hdr; leave this one out";
        return Err(log.error(1, "the name of this log does not end with a section", remedy));
    };
    log.check_ended()?;
    let mut values = Vec::new();
    for (number, line) in
        log.lines().filter(|(_, line)| !line.starts_with('#') && !line.starts_with('"') && !line.is_empty())
    {
        let torn = |why: String| {
            log.error(
                number,
                format!("\"{}\" {why}", shortened(line)),
                "the log is torn; copy it again, or leave it out",
            )
        };
        let encoded = line.rsplit(',').next().unwrap_or_default();
        let bytes = BASE64.decode(encoded).map_err(|error| torn(format!("holds no base64: {error}")))?;
        let histogram: Histogram<u64> = Deserializer::new()
            .deserialize(&mut bytes.as_slice())
            .map_err(|error| torn(format!("holds no histogram: {error:?}")))?;
        values.extend(histogram.iter_recorded().map(|at| (us(at.value_iterated_to() as f64), at.count_at_value())));
    }
    Ok((section.to_owned(), Counted { values, ..Counted::default() }))
}

#[cfg(test)]
mod tests {
    use hdrhistogram::serialization::{Serializer, V2DeflateSerializer};

    use super::*;

    fn file(name: &str, text: &str) -> SourceFile {
        SourceFile { name: name.to_owned(), text: text.to_owned() }
    }

    fn line(values: &[u64]) -> String {
        let mut histogram = Histogram::<u64>::new(3).unwrap();
        values.iter().for_each(|value| histogram.record(*value).unwrap());
        let mut bytes = Vec::new();
        V2DeflateSerializer::new().serialize(&histogram, &mut bytes).unwrap();
        format!("0.000,10.000,9.000,{}\n", BASE64.encode(bytes))
    }

    #[test]
    fn all_intervals_of_a_log_are_added() {
        let text = format!(
            "#[Logging for: READ]\n\"StartTimestamp\",\"Interval_Length\"\n{}{}",
            line(&[100, 100]),
            line(&[300])
        );
        let (section, counted) = read(&file("d/out-READ.hdr", &text)).unwrap();
        assert_eq!((section.as_str(), counted.count()), ("READ", 3));
        assert_eq!(counted.histogram().max_ns(), 300_000);
        let error = read(&file("READ.hdr", "0,1,2,HISTF~~\n")).unwrap_err().to_string();
        assert!(error.starts_with("READ.hdr:1: "), "{error}");
    }

    #[test]
    fn logs_belong_to_the_output_whose_name_they_bear() {
        let (a, b) = (file("d/a.txt", ""), file("d/b.txt", ""));
        let of_a = file("d/a-READ-MODIFY-WRITE.hdr", "");
        assert_eq!(section_of(&of_a), Some(("a-", "READ-MODIFY-WRITE")));
        assert!(belongs(&of_a, &a, &[&a, &b]) && !belongs(&of_a, &b, &[&a, &b]));
        assert!(belongs(&file("d/READ.hdr", ""), &a, &[&a]) && !belongs(&file("e/READ.hdr", ""), &a, &[&a]));
        assert_eq!(section_of(&file("x-Intended-READ.hdr", "")), Some(("x-", "Intended-READ")));
    }
}
