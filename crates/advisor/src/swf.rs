//! The Standard Workload Format of the Parallel Workloads Archive (version 2.2), plain or compressed with gzip.
//!
//! A line is a comment that starts with `;` (the header, which names the system and the people to acknowledge) or a job of
//! eighteen fields, −1 where unknown. Archives hold logs of many ages and tools, so a line that is not a job is reported with its
//! number and left out; it does not make the rest unreadable.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use flate2::bufread::MultiGzDecoder;

use crate::fault::Fault;

/// The most bytes of a trace after decompression: ten times the largest of the archive.
const TRACE_BYTES_MAX: u64 = 4 << 30;

/// Fields of a job's line.
const FIELDS: usize = 18;

/// What is read of a job's line. Fields that the log leaves unknown (−1) are `None`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SwfRecord {
    /// 2: seconds from the start of the log, or from 1970, to its submission, rounded down.
    pub submit: u64,
    /// 3: seconds from submission to start, rounded down.
    pub wait: Option<u64>,
    /// 4: seconds from start to end, rounded up.
    pub run: Option<u64>,
    /// 5: processors that it had.
    pub processors: Option<u64>,
    /// 8: processors that were asked for.
    pub processors_requested: Option<u64>,
    /// 9: seconds that were asked for, rounded up: the user's estimate.
    pub time_requested: Option<u64>,
    /// 12: the user, as a number.
    pub user: Option<u64>,
    /// 14: the executable, as a number.
    pub executable: Option<u64>,
}

/// A line that is neither a comment nor a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MalformedLine {
    /// Its number, from 1.
    pub line: usize,
    /// The fault of the line.
    pub reason: String,
}

/// A whole log.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SwfTrace {
    /// The comment lines without their `;`, in order.
    pub header: Vec<String>,
    /// The jobs, in the order of the log.
    pub records: Vec<SwfRecord>,
    /// The lines that were left out.
    pub malformed: Vec<MalformedLine>,
}

impl SwfTrace {
    /// Reads a file, plain or gzip by its first bytes.
    ///
    /// # Errors
    /// The file cannot be opened or read, is no gzip file although it starts like one, is longer than is read, or holds no job.
    pub fn open(path: &Path) -> Result<Self, Fault> {
        let unreadable = |why: io::Error| Fault::of(path, why);
        let mut file = BufReader::new(File::open(path).map_err(unreadable)?);
        let zipped = file.fill_buf().map_err(unreadable)?.starts_with(&[0x1f, 0x8b]);
        let plain: Box<dyn Read> = if zipped {
            Box::new(MultiGzDecoder::new(file))
        } else {
            Box::new(file)
        };
        let mut rest = BufReader::new(plain.take(TRACE_BYTES_MAX));
        let trace = Self::read(&mut rest).map_err(unreadable)?;
        if rest.into_inner().limit() == 0 {
            return Err(Fault::of(path, format!("longer than {TRACE_BYTES_MAX} bytes")));
        }
        if trace.records.is_empty() {
            let why = "no line of it is a job in Standard Workload Format";
            return Err(Fault::of(path, why));
        }
        Ok(trace)
    }

    /// Reads the lines of a plain log.
    ///
    /// # Errors
    /// Those of the reader.
    pub(crate) fn read(lines: &mut impl BufRead) -> io::Result<Self> {
        let mut trace = Self::default();
        let mut bytes = Vec::new();
        for number in 1.. {
            bytes.clear();
            if lines.read_until(b'\n', &mut bytes)? == 0 {
                break;
            }
            // Names in old headers are in old encodings.
            let line = String::from_utf8_lossy(&bytes);
            let line = line.trim();
            if let Some(comment) = line.strip_prefix(';') {
                trace.header.push(comment.to_owned());
            } else if !line.is_empty() {
                match SwfRecord::parse(line) {
                    Ok(record) => trace.records.push(record),
                    Err(reason) => trace.malformed.push(MalformedLine { line: number, reason }),
                }
            }
        }
        Ok(trace)
    }

    /// The value of a header field such as `MaxNodes`, without the lines that continue it.
    fn header_field(&self, name: &str) -> Option<&str> {
        self.header.iter().find_map(|line| {
            let (key, value) = line.split_once(':')?;
            (key.trim() == name).then(|| value.trim())
        })
    }

    /// The number of a header field, such as 144 of `MaxNodes: 144 (8 of them with more memory)`.
    pub(crate) fn header_number(&self, name: &str) -> Option<u64> {
        let text = self.header_field(name)?;
        let end = text
            .find(|c: char| c == '(' || c.is_whitespace())
            .unwrap_or(text.len());
        text[..end].parse().ok()
    }

    /// The header lines about the origin of the log and the terms of its use: from `Acknowledge` and `Copyright` up to the next
    /// field. A publication of results of the log repeats them.
    pub(crate) fn notice(&self) -> Vec<&str> {
        let mut notice = Vec::new();
        let mut within = false;
        for line in &self.header {
            // Continuation lines are indented by more than the space that follows the semicolon.
            if !line.starts_with("  ") {
                let key = line.split_once(':').map_or("", |(key, _)| key.trim());
                within = matches!(
                    key,
                    "Acknowledge" | "Copyright" | "Conversion" | "Installation" | "Computer"
                );
            }
            if within && !line.trim().is_empty() {
                notice.push(line.trim());
            }
        }
        notice
    }
}

impl SwfRecord {
    fn parse(line: &str) -> Result<Self, String> {
        let fields: Vec<&str> = line.split_ascii_whitespace().collect();
        let fields: [&str; FIELDS] = fields
            .try_into()
            .map_err(|fields: Vec<&str>| format!("{} fields, not {FIELDS}", fields.len()))?;
        let whole = |at: usize| read_swf_count(at, fields[at - 1]);
        let down = |at: usize| read_swf_seconds(at, fields[at - 1], false);
        let up = |at: usize| read_swf_seconds(at, fields[at - 1], true);
        let known = |at: usize, read: Option<u64>| read.ok_or_else(|| format!("field {at} is unknown"));
        // A line with a wrong field is no job, also where that field is not read.
        for at in 1..=FIELDS {
            match at {
                1 => _ = known(at, whole(at)?)?,
                2 => _ = known(at, down(at)?)?,
                3 | 4 | 9 => _ = up(at)?,
                // Processor time and memory.
                6 | 7 | 10 => check_swf_quantity(at, fields[at - 1])?,
                _ => _ = whole(at)?,
            }
        }
        Ok(Self {
            submit: known(2, down(2)?)?,
            wait: down(3)?,
            run: up(4)?,
            processors: whole(5)?,
            processors_requested: whole(8)?,
            time_requested: up(9)?,
            user: whole(12)?,
            executable: whole(14)?,
        })
    }
}

/// A whole number, or −1 for none.
fn read_swf_count(at: usize, field: &str) -> Result<Option<u64>, String> {
    if field == "-1" {
        return Ok(None);
    }
    match field.parse() {
        Ok(number) => Ok(Some(number)),
        Err(_) => Err(format!("field {at} is {field:?}, not a whole number or -1")),
    }
}

/// A time in whole seconds, rounded up or down, or −1 for none. Some tools write decimals.
fn read_swf_seconds(at: usize, field: &str, is_up: bool) -> Result<Option<u64>, String> {
    let (whole, decimals) = field.split_once('.').unwrap_or((field, ""));
    let is_part = decimals.bytes().any(|digit| digit != b'0');
    if whole == "-1" && !is_part {
        return Ok(None);
    }
    let are_digits = decimals.bytes().all(|digit| digit.is_ascii_digit());
    match whole.parse::<u64>() {
        Ok(seconds) if are_digits => Ok(Some(seconds.saturating_add((is_up && is_part).into()))),
        _ => Err(format!("field {at} is {field:?}, not a number from 0 or -1")),
    }
}

/// Whether it is a number from 0, or −1 for none.
fn check_swf_quantity(at: usize, field: &str) -> Result<(), String> {
    match field.parse::<f64>() {
        Ok(-1.0) => Ok(()),
        Ok(number) if number >= 0.0 && number.is_finite() => Ok(()),
        _ => Err(format!("field {at} is {field:?}, not a number from 0 or -1")),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::SwfTrace;

    const LOG: &str = "; Version: 2.2\n; Computer: Made-up\n; Acknowledge: Nobody\n;  of nowhere\n; MaxNodes: 128\n\
        ; Note: not this\n\
        1 0 10 3600 8 3500.25 -1 8 7200 -1 1 5 6 7 3 -1 -1 -1\n\
        2 60 -1 -1 -1 -1 -1 38 6900 -1 5 5 6 7 5 -1 1 30\n";

    fn read(text: &str) -> SwfTrace {
        SwfTrace::read(&mut text.as_bytes()).expect("text can be read")
    }

    #[test]
    fn the_fields_of_a_job_are_read() {
        let trace = read(LOG);
        assert_eq!(trace.malformed, []);
        let [first, second] = trace.records[..] else {
            panic!("{} jobs", trace.records.len());
        };
        assert_eq!(
            (first.submit, first.wait, first.run, first.processors),
            (0, Some(10), Some(3600), Some(8))
        );
        assert_eq!(
            (first.processors_requested, first.time_requested),
            (Some(8), Some(7200))
        );
        assert_eq!((first.user, first.executable), (Some(5), Some(7)));
        assert_eq!((second.run, second.processors), (None, None));
    }

    #[test]
    fn the_header_is_kept_and_its_notice_found() {
        let trace = read(LOG);
        assert_eq!(trace.header.len(), 6);
        assert_eq!(trace.header_field("MaxNodes"), Some("128"));
        assert_eq!(trace.header_field("MaxJobs"), None);
        assert_eq!(
            trace.notice(),
            ["Computer: Made-up", "Acknowledge: Nobody", "of nowhere"]
        );
    }

    #[test]
    fn malformed_lines_are_reported_with_their_number_and_left_out() {
        let trace = read(&format!(
            "{LOG}\n1 2 3\n3 x 10 3600 8 -1 -1 8 7200 -1 1 5 6 7 3 -1 -1 -1\n\
             4 -1 10 3600 8 -1 -1 8 7200 -1 1 5 6 7 3 -1 -1 -1\n5 9 10 -7 8 -1 -1 8 7200 -1 1 5 6 7 3 -1 -1 -1\n"
        ));
        assert_eq!(trace.records.len(), 2);
        let found: Vec<(usize, &str)> = trace
            .malformed
            .iter()
            .map(|m| (m.line, m.reason.as_str()))
            .collect();
        assert_eq!(
            found,
            [
                (10, "3 fields, not 18"),
                (11, "field 2 is \"x\", not a number from 0 or -1"),
                (12, "field 2 is unknown"),
                (13, "field 4 is \"-7\", not a number from 0 or -1"),
            ]
        );
    }

    #[test]
    fn times_may_have_decimals_and_sizes_words_behind_them() {
        let trace = read(
            "; MaxNodes: 144 (1152 processors)\n; MaxProcs: 1152(8 a node)\n; MaxQueues: many\n\
             1 12.75 3.5 59.01 8 3500.25 -1 8 60.000 -1 1 5 6 7 3 -1 -1 -1\n2 5.0 -1.0 -1 8 -1 -1 8 -1 -1 1 5 6 7 3 -1 -1 -1\n\
             3 5 1.x 1 8 -1 -1 8 -1 -1 1 5 6 7 3 -1 -1 -1\n",
        );
        let times: Vec<_> = trace
            .records
            .iter()
            .map(|job| (job.submit, job.wait, job.run, job.time_requested))
            .collect();
        assert_eq!(times, [(12, Some(3), Some(60), Some(60)), (5, None, None, None)]);
        assert_eq!(trace.malformed.len(), 1, "{:?}", trace.malformed);
        assert_eq!(trace.header_number("MaxNodes"), Some(144));
        assert_eq!(trace.header_number("MaxProcs"), Some(1_152));
        assert_eq!(trace.header_number("MaxQueues"), None);
    }

    #[test]
    fn a_gzip_file_reads_as_the_plain_one() {
        let folder = tempfile::tempdir().unwrap();
        let (plain, zipped) = (folder.path().join("log.swf"), folder.path().join("log.swf.gz"));
        std::fs::write(&plain, LOG).unwrap();
        let file = std::fs::File::create(&zipped).unwrap();
        let mut encoder = flate2::write::GzEncoder::new(file, flate2::Compression::default());
        encoder.write_all(LOG.as_bytes()).unwrap();
        encoder.finish().unwrap();
        assert_eq!(SwfTrace::open(&plain).unwrap(), SwfTrace::open(&zipped).unwrap());
    }

    #[test]
    fn what_is_no_trace_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notes.txt");
        let refused = || SwfTrace::open(&path).unwrap_err().to_string();
        let no_job = "no line of it is a job in Standard Workload Format";
        assert!(refused().contains("os error"), "missing");
        std::fs::write(&path, "Dear all,\nplease find the log attached.\n").unwrap();
        assert!(refused().ends_with(no_job), "a letter");
        std::fs::write(&path, [0x1f, 0x8b, 8, 0, 1, 2, 3]).unwrap();
        let cut_off = refused();
        assert!(
            !cut_off.ends_with(no_job) && !cut_off.contains("longer than"),
            "{cut_off}"
        );
    }
}
