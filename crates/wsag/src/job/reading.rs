//! Reading JSDL: known elements are read; an element that is not honoured is refused, with advice.

use crate::job::{
    Application, Bound, DataStaging, Exact, Filter, FilterKind, JobDefinition, PosixApplication, RangeValue,
    Resources,
};
use crate::xml::datatypes::{boolean, number};
use crate::xml::document::Node;
use crate::xml::names::{Named, named};
use crate::xml::ns::{JSDL, JSDL_POSIX};
use crate::xml::reader::{Check, Children, simple};
use crate::xml::violation::ViolationKind;

/// Reads a job; None only after a violation was added.
pub(crate) fn read(check: &mut Check, node: Node<'_>) -> Option<JobDefinition> {
    check.attributes(node, &[("", "id")]);
    check.children_only(node, |children| {
        children.required(JSDL, "JobDescription", read_description)
    })
}

/// The children of an element of JSDL without attributes, of which some may not be honoured here.
fn honoured<'d, T>(check: &mut Check, node: Node<'d>, read: impl FnOnce(&mut Children<'_, 'd>) -> T) -> T {
    check.attributes(node, &[]);
    refuse_unsupported(check, node);
    check.children_only(node, read)
}

fn read_description(check: &mut Check, node: Node<'_>) -> Option<JobDefinition> {
    honoured(check, node, |children| {
        let identification = children.optional(JSDL, "JobIdentification", |check, node| {
            honoured(check, node, |children| {
                let name = children.optional(JSDL, "JobName", Check::string);
                Some((name, children.optional(JSDL, "Description", Check::string)))
            })
        });
        let (job_name, description) = identification.unwrap_or_default();
        Some(JobDefinition {
            job_name,
            description,
            application: children.optional(JSDL, "Application", read_application),
            resources: children
                .optional(JSDL, "Resources", read_resources)
                .unwrap_or_default(),
            staging: children.many(JSDL, "DataStaging", read_staging),
        })
    })
}

fn read_application(check: &mut Check, node: Node<'_>) -> Option<Application> {
    honoured(check, node, |children| {
        let name = children.required(JSDL, "ApplicationName", Check::string);
        Some(Application {
            version: children.optional(JSDL, "ApplicationVersion", Check::string),
            posix: children.optional(JSDL_POSIX, "POSIXApplication", read_posix),
            name: name?,
        })
    })
}

fn read_posix(check: &mut Check, node: Node<'_>) -> Option<PosixApplication> {
    honoured(check, node, |children| {
        Some(PosixApplication {
            arguments: children.many(JSDL_POSIX, "Argument", Check::string),
            input: children.optional(JSDL_POSIX, "Input", Check::string),
            output: children.optional(JSDL_POSIX, "Output", Check::string),
            error: children.optional(JSDL_POSIX, "Error", Check::string),
        })
    })
}

fn read_resources(check: &mut Check, node: Node<'_>) -> Option<Resources> {
    honoured(check, node, |children| {
        let cpu_architecture = children.optional(JSDL, "CPUArchitecture", |check, node| {
            check.children(node, |children| {
                children.required(JSDL, "CPUArchitectureName", simple(str::parse))
            })
        });
        let filters = FilterKind::NAMES.iter().filter_map(|(kind, _)| {
            let range = children.optional(JSDL, kind.name(), read_range)?;
            Some(Filter { kind: *kind, range })
        });
        Some(Resources {
            cpu_architecture,
            filters: filters.collect(),
            nodes: children.optional(JSDL, "TotalResourceCount", read_range),
        })
    })
}

pub(crate) fn read_range(check: &mut Check, node: Node<'_>) -> Option<RangeValue> {
    check.children(node, |children| {
        Some(RangeValue {
            upper: children.optional(JSDL, "UpperBoundedRange", read_bound),
            lower: children.optional(JSDL, "LowerBoundedRange", read_bound),
            exact: children.many(JSDL, "Exact", |check, node| {
                check.attributes(node, &[("", "epsilon")]);
                let epsilon = check.read_attribute(node, ("", "epsilon"), number);
                let value = check.simple_only(node, number)?;
                Some(Exact { value, epsilon })
            }),
            ranges: children.many(JSDL, "Range", |check, node| {
                check.children(node, |children| {
                    let lower = children.required(JSDL, "LowerBound", read_bound);
                    let upper = children.required(JSDL, "UpperBound", read_bound);
                    lower.zip(upper)
                })
            }),
        })
    })
}

fn read_bound(check: &mut Check, node: Node<'_>) -> Option<Bound> {
    check.attributes(node, &[("", "exclusiveBound")]);
    let exclusive = check.read_attribute(node, ("", "exclusiveBound"), boolean);
    Some(Bound {
        value: check.simple_only(node, number)?,
        exclusive: exclusive.unwrap_or(false),
    })
}

fn read_staging(check: &mut Check, node: Node<'_>) -> Option<DataStaging> {
    check.attributes(node, &[("", "name")]);
    refuse_unsupported(check, node);
    check.children_only(node, |children| {
        let file_name = children.required(JSDL, "FileName", Check::string);
        let creation_flag = children.required(JSDL, "CreationFlag", simple(named));
        Some(DataStaging {
            delete_on_termination: children.optional(JSDL, "DeleteOnTermination", simple(boolean)),
            source: children.optional(JSDL, "Source", read_uri),
            target: children.optional(JSDL, "Target", read_uri),
            file_name: file_name?,
            creation_flag: creation_flag?,
        })
    })
}

fn read_uri(check: &mut Check, node: Node<'_>) -> Option<String> {
    check.children(node, |children| {
        children.required(JSDL, "URI", simple(str::parse))
    })
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
