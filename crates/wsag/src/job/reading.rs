//! Reading JSDL: known elements are read; an element that is not honoured is refused, with advice.

use crate::document::Node;
use crate::job::{
    Application, Bound, CreationFlag, DataStaging, Exact, Filter, FilterKind, JobDefinition,
    PosixApplication, RangeValue, Resources,
};
use crate::ns::{JSDL, JSDL_POSIX};
use crate::reader::{Check, Sequence};
use crate::violation::ViolationKind;

/// Reads a job; None only after a violation was added.
pub(crate) fn read(check: &mut Check, node: Node<'_>) -> Option<JobDefinition> {
    check.attributes(node, &[("", "id")]);
    let mut sequence = Sequence::of(check, node);
    let description = sequence.required(check, JSDL, "JobDescription");
    sequence.end(check);
    read_description(check, description?)
}

fn read_description(check: &mut Check, node: Node<'_>) -> Option<JobDefinition> {
    check.attributes(node, &[]);
    refuse_unsupported(check, node);
    let mut sequence = Sequence::of(check, node);
    let mut job = JobDefinition::default();
    if let Some(node) = sequence.optional(JSDL, "JobIdentification") {
        check.attributes(node, &[]);
        refuse_unsupported(check, node);
        let mut sequence = Sequence::of(check, node);
        job.job_name = sequence
            .optional(JSDL, "JobName")
            .and_then(|node| check.string(node));
        job.description = sequence
            .optional(JSDL, "Description")
            .and_then(|node| check.string(node));
        sequence.end(check);
    }
    if let Some(node) = sequence.optional(JSDL, "Application") {
        job.application = Some(read_application(check, node)?);
    }
    if let Some(node) = sequence.optional(JSDL, "Resources") {
        job.resources = read_resources(check, node);
    }
    for node in sequence.many(JSDL, "DataStaging") {
        job.staging.extend(read_staging(check, node));
    }
    sequence.end(check);
    Some(job)
}

fn read_application(check: &mut Check, node: Node<'_>) -> Option<Application> {
    check.attributes(node, &[]);
    refuse_unsupported(check, node);
    let mut sequence = Sequence::of(check, node);
    let name = sequence
        .required(check, JSDL, "ApplicationName")
        .and_then(|node| check.string(node));
    let version = sequence
        .optional(JSDL, "ApplicationVersion")
        .and_then(|node| check.string(node));
    let posix = sequence
        .optional(JSDL_POSIX, "POSIXApplication")
        .map(|node| read_posix(check, node));
    sequence.end(check);
    Some(Application {
        name: name?,
        version,
        posix,
    })
}

fn read_posix(check: &mut Check, node: Node<'_>) -> PosixApplication {
    check.attributes(node, &[]);
    refuse_unsupported(check, node);
    let mut sequence = Sequence::of(check, node);
    let arguments = sequence.many(JSDL_POSIX, "Argument");
    let mut file = |name| {
        sequence
            .optional(JSDL_POSIX, name)
            .and_then(|node| check.string(node))
    };
    let (input, output, error) = (file("Input"), file("Output"), file("Error"));
    sequence.end(check);
    let arguments = arguments
        .into_iter()
        .filter_map(|node| check.string(node))
        .collect();
    PosixApplication {
        arguments,
        input,
        output,
        error,
    }
}

fn read_resources(check: &mut Check, node: Node<'_>) -> Resources {
    check.attributes(node, &[]);
    refuse_unsupported(check, node);
    let mut sequence = Sequence::of(check, node);
    let mut resources = Resources::default();
    if let Some(node) = sequence.optional(JSDL, "CPUArchitecture") {
        check.attributes(node, &[]);
        let mut sequence = Sequence::of(check, node);
        let name = sequence.required(check, JSDL, "CPUArchitectureName");
        sequence.end(check);
        resources.cpu_architecture = name.and_then(|node| check.simple(node, |text| Ok(text.to_owned())));
    }
    for (kind, name, _) in FilterKind::NAMES {
        if let Some(node) = sequence.optional(JSDL, name) {
            let range = read_range(check, node);
            resources.filters.push(Filter { kind, range });
        }
    }
    resources.nodes = sequence
        .optional(JSDL, "TotalResourceCount")
        .map(|node| read_range(check, node));
    sequence.end(check);
    resources
}

pub(crate) fn read_range(check: &mut Check, node: Node<'_>) -> RangeValue {
    check.attributes(node, &[]);
    let mut sequence = Sequence::of(check, node);
    let upper = sequence
        .optional(JSDL, "UpperBoundedRange")
        .and_then(|node| read_bound(check, node));
    let lower = sequence
        .optional(JSDL, "LowerBoundedRange")
        .and_then(|node| read_bound(check, node));
    let exact = sequence.many(JSDL, "Exact");
    let ranges = sequence.many(JSDL, "Range");
    sequence.end(check);
    let exact = exact.into_iter().filter_map(|node| {
        check.attributes(node, &[("", "epsilon")]);
        let epsilon = check.read_attribute(node, ("", "epsilon"), double);
        Some(Exact {
            value: check.simple_only(node, double)?,
            epsilon,
        })
    });
    let exact = exact.collect();
    let ranges = ranges.into_iter().filter_map(|node| {
        check.attributes(node, &[]);
        let mut sequence = Sequence::of(check, node);
        let lower = sequence
            .required(check, JSDL, "LowerBound")
            .and_then(|node| read_bound(check, node));
        let upper = sequence
            .required(check, JSDL, "UpperBound")
            .and_then(|node| read_bound(check, node));
        sequence.end(check);
        Some((lower?, upper?))
    });
    RangeValue {
        upper,
        lower,
        exact,
        ranges: ranges.collect(),
    }
}

fn read_bound(check: &mut Check, node: Node<'_>) -> Option<Bound> {
    check.attributes(node, &[("", "exclusiveBound")]);
    let exclusive = check.read_attribute(node, ("", "exclusiveBound"), boolean);
    Some(Bound {
        value: check.simple_only(node, double)?,
        exclusive: exclusive.unwrap_or(false),
    })
}

fn read_staging(check: &mut Check, node: Node<'_>) -> Option<DataStaging> {
    check.attributes(node, &[("", "name")]);
    refuse_unsupported(check, node);
    let mut sequence = Sequence::of(check, node);
    let file_name = sequence
        .required(check, JSDL, "FileName")
        .and_then(|node| check.string(node));
    let flag = sequence.required(check, JSDL, "CreationFlag").and_then(|node| {
        check.simple(node, |text| {
            let known = CreationFlag::NAMES.iter().find(|(_, name)| *name == text);
            known
                .map(|(flag, _)| *flag)
                .ok_or("overwrite, dontOverwrite or append is expected".to_owned())
        })
    });
    let delete = sequence
        .optional(JSDL, "DeleteOnTermination")
        .and_then(|node| check.simple(node, boolean));
    let source = sequence
        .optional(JSDL, "Source")
        .and_then(|node| read_uri(check, node));
    let target = sequence
        .optional(JSDL, "Target")
        .and_then(|node| read_uri(check, node));
    sequence.end(check);
    Some(DataStaging {
        file_name: file_name?,
        creation_flag: flag?,
        delete_on_termination: delete,
        source,
        target,
    })
}

fn read_uri(check: &mut Check, node: Node<'_>) -> Option<String> {
    check.attributes(node, &[]);
    let mut sequence = Sequence::of(check, node);
    let uri = sequence.required(check, JSDL, "URI");
    sequence.end(check);
    uri.and_then(|node| check.simple(node, |text| Ok(text.to_owned())))
}

/// The elements of JSDL that this service does not honour, each with advice.
fn refuse_unsupported(check: &mut Check, node: Node<'_>) {
    const UNSUPPORTED: [(&str, &str, &str); 17] = [
        (JSDL, "CandidateHosts", "nodes are chosen by the provider"),
        (JSDL, "FileSystem", "file systems cannot be asked for"),
        (JSDL, "FilesystemName", "files are in the job's own folder"),
        (JSDL, "ExclusiveExecution", "reserved nodes are always exclusive"),
        (
            JSDL,
            "OperatingSystem",
            "the operating system cannot be asked for",
        ),
        (JSDL, "IndividualCPUTime", "time is asked for by arp:Duration"),
        (JSDL, "TotalCPUTime", "time is asked for by arp:Duration"),
        (JSDL, "JobAnnotation", "annotations are not kept"),
        (JSDL, "JobProject", "projects are not kept"),
        (
            JSDL_POSIX,
            "Executable",
            "only applications of the provider's catalogue run: name one in ApplicationName",
        ),
        (
            JSDL_POSIX,
            "WorkingDirectory",
            "a job runs in a folder of its own",
        ),
        (
            JSDL_POSIX,
            "Environment",
            "the environment is set by the provider",
        ),
        (JSDL_POSIX, "WallTimeLimit", "time is asked for by arp:Duration"),
        (JSDL_POSIX, "CPUTimeLimit", "limits are set by the provider"),
        (JSDL_POSIX, "MemoryLimit", "limits are set by the provider"),
        (JSDL_POSIX, "UserName", "jobs run as the provider decides"),
        (JSDL_POSIX, "GroupName", "jobs run as the provider decides"),
    ];
    for child in node.children() {
        if let Some((.., why)) = UNSUPPORTED.iter().find(|(ns, name, _)| child.is(ns, name)) {
            check.add(
                ViolationKind::NotSupported,
                child,
                format!("not supported here: {why}"),
            );
        }
    }
}

/// xs:double.
pub(crate) fn double(text: &str) -> Result<f64, String> {
    crate::datatypes::double(text).ok_or_else(|| "a number is expected".to_owned())
}

/// xs:boolean.
pub(crate) fn boolean(text: &str) -> Result<bool, String> {
    match text {
        "true" | "1" => Ok(true),
        "false" | "0" => Ok(false),
        _ => Err("true or false is expected".to_owned()),
    }
}
