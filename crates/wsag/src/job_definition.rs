//! The job: the part of JSDL 1.0 (GFD.56) that the service honours.
//!
//! JSDL can ask for much that a provider of catalogue applications must not grant (an executable, an
//! environment, a user name) or does not offer (file systems, candidate hosts). Such an element is refused by its
//! path: ignoring it would promise something else than was asked. An element that asks for nothing (a project, an
//! annotation), or for what every node gives (Linux, nodes of its own), is read and needs no more. Attributes of JSDL
//! are unqualified.

mod range_value;

use serde::{Deserialize, Serialize};

pub use crate::job_definition::range_value::{Bound, Exact, RangeValue};
use crate::xml::datatypes::{parse_boolean, parse_non_negative_integer, parse_unsigned_integer};
use crate::xml::ns::{BSP, JSDL, JSDL_POSIX};
use crate::xml::{
    Children, DocumentCheck, NamedValue, Node, Readable, ViolationKind, WrittenValue, Xml,
    check_repeated_element, element, is_ncname, named_values, read_simple,
};

/// `jsdl:JobDefinition`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct JobDefinition {
    /// `JobIdentification/JobName`, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job_name: Option<String>,
    /// `JobIdentification/Description`, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The application to run; without it nodes are reserved and nothing runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub application: Option<Application>,
    /// How many nodes, and the conditions on them.
    pub resources: Resources,
    /// Files to move before and after, in the order given.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub staging: Vec<DataStaging>,
}

element! {
    /// `jsdl:Application`.
    #[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
    pub struct Application by read_children_of_job {
        /// Name in the provider's catalogue.
        pub name: String = "jsdl:ApplicationName",
        /// Version in the provider's catalogue.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub version: Option<String> = "jsdl:ApplicationVersion",
        /// For people.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub description: Option<String> = "jsdl:Description",
        /// `jsdl-posix:POSIXApplication`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub posix: Option<PosixApplication> = "jsdl-posix:POSIXApplication",
    }
}

element! {
    /// `jsdl-posix:POSIXApplication`, without the parts that the provider decides.
    #[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
    pub struct PosixApplication by read_children_of_job {
        /// Arguments, one entry of the argument vector each.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        pub arguments: Vec<String> = "jsdl-posix:Argument",
        /// File to read as standard input.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub input: Option<String> = "jsdl-posix:Input",
        /// File to write standard output to.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub output: Option<String> = "jsdl-posix:Output",
        /// File to write standard error to.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub error: Option<String> = "jsdl-posix:Error",
        /// Most seconds that it may run.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub wall_time_limit: Option<u64> = "jsdl-posix:WallTimeLimit" by parse_non_negative_integer,
    }
}

/// `jsdl:Resources`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Resources {
    /// `CPUArchitecture/CPUArchitectureName`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_architecture: Option<String>,
    /// Ranges that a resource or its nodes must lie in, in the order of JSDL, each kind at most once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub filters: Vec<Filter>,
    /// `TotalResourceCount`: nodes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nodes: Option<RangeValue>,
}

/// One range that a resource must satisfy.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Filter {
    /// The measured attribute.
    pub kind: FilterKind,
    /// The range in which it must lie.
    pub range: RangeValue,
}

named_values! {
    /// The attribute that a [`Filter`] measures, in the order of JSDL's schema; those without a word in JSDL come last.
    #[derive(PartialOrd, Ord)]
    pub enum FilterKind {
        /// Hertz of a processor.
        IndividualCpuSpeed = "IndividualCPUSpeed",
        /// Processors of a node.
        IndividualCpuCount = "IndividualCPUCount",
        /// Bits per second of a node.
        IndividualNetworkBandwidth = "IndividualNetworkBandwidth",
        /// Bytes of memory of a node.
        IndividualPhysicalMemory = "IndividualPhysicalMemory",
        /// Bytes of virtual memory of a node.
        IndividualVirtualMemory = "IndividualVirtualMemory",
        /// Bytes of disk of a node.
        IndividualDiskSpace = "IndividualDiskSpace",
        /// Processors of all nodes together.
        TotalCpuCount = "TotalCPUCount",
        /// Bytes of memory of all nodes together.
        TotalPhysicalMemory = "TotalPhysicalMemory",
        /// Bytes of virtual memory of all nodes together.
        TotalVirtualMemory = "TotalVirtualMemory",
        /// Bytes of disk of all nodes together.
        TotalDiskSpace = "TotalDiskSpace",
        /// GPUs of a node.
        IndividualGpuCount = "IndividualGPUCount",
    }
}

impl FilterKind {
    /// The name of its element, with the usual prefix.
    pub fn element(self) -> String {
        let prefix = if self.namespace() == JSDL { "jsdl" } else { "bsp" };
        format!("{prefix}:{}", self.name())
    }

    /// The namespace of its element: ours, where JSDL has no word for the attribute.
    pub(crate) fn namespace(self) -> &'static str {
        match self {
            FilterKind::IndividualGpuCount => BSP,
            _ => JSDL,
        }
    }
}

/// `jsdl:DataStaging`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DataStaging {
    /// Name of the file in the job's folder.
    pub file_name: String,
    /// The action where the file exists.
    pub creation_flag: CreationFlag,
    /// Whether it is removed when the job has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delete_on_termination: Option<bool>,
    /// `Source/URI`: where it comes from. Never fetched by this crate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// `Target/URI`: where it goes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// `bsp:Bytes`: how many bytes it has, for estimates.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
}

named_values! {
    /// `jsdl:CreationFlag`.
    pub enum CreationFlag {
        /// Replace it.
        Overwrite = "overwrite",
        /// Leave it.
        DontOverwrite = "dontOverwrite",
        /// Write at its end.
        Append = "append",
    }
}

impl Readable for JobDefinition {
    fn read(check: &mut DocumentCheck, node: Node<'_>) -> Option<JobDefinition> {
        check.attributes(node, &[("", "id")]);
        check.read_attribute(node, ("", "id"), check_name_of_job_definition);
        if let Some(id) = node.attribute("", "id") {
            check.note_id(node, id);
        }
        check.children_only(node, |children| {
            let read = children.required(JSDL, "JobDescription", read_job_description);
            check_foreign_elements_of_job(children);
            read
        })
    }
}

/// The name of a part of a document, such as `xs:ID`, checked and not kept.
fn check_name_of_job_definition(text: &str) -> Result<(), &'static str> {
    is_ncname(text)
        .then_some(())
        .ok_or("a name without a colon is expected")
}

/// Takes the following elements of other namespaces, which ask for nothing, and which answers repeat.
fn check_foreign_elements_of_job(children: &mut Children<'_, '_>) {
    for node in children.foreign(JSDL) {
        check_repeated_element(children.check, node);
    }
}

/// The children of an element of JSDL, of which some may not be honoured here.
fn read_children_of_job<'d, T>(
    check: &mut DocumentCheck,
    node: Node<'d>,
    read: impl FnOnce(&mut Children<'_, 'd>) -> T,
) -> T {
    refuse_unsupported_elements_of_job(check, node);
    check.read_attribute(node, ("", "name"), check_name_of_job_definition);
    check.children_only(node, read)
}

/// Name and description of a job.
type Identification = (Option<String>, Option<String>);

/// `jsdl:JobIdentification`.
pub(crate) fn read_identification_of_job(
    check: &mut DocumentCheck,
    node: Node<'_>,
) -> Option<Identification> {
    check.attributes(node, &[]);
    read_children_of_job(check, node, |children| {
        let name = children.optional(JSDL, "JobName", DocumentCheck::string);
        let description = children.optional(JSDL, "Description", DocumentCheck::string);
        children.many(JSDL, "JobAnnotation", DocumentCheck::string);
        children.many(JSDL, "JobProject", DocumentCheck::string);
        check_foreign_elements_of_job(children);
        Some((name, description))
    })
}

/// `jsdl:JobDescription`.
pub(crate) fn read_job_description(check: &mut DocumentCheck, node: Node<'_>) -> Option<JobDefinition> {
    check.attributes(node, &[]);
    read_children_of_job(check, node, |children| {
        let identification = children.optional(JSDL, "JobIdentification", read_identification_of_job);
        let (job_name, description) = identification.unwrap_or_default();
        Some(JobDefinition {
            job_name,
            description,
            application: children.optional(JSDL, "Application", Readable::read),
            resources: children
                .optional(JSDL, "Resources", Resources::read)
                .unwrap_or_default(),
            staging: children.many(JSDL, "DataStaging", DataStaging::read),
        })
    })
}

impl WrittenValue for JobDefinition {
    const PREFIXES: &'static [&'static str] = &["jsdl", "jsdl-posix"];

    fn write(&self, xml: &mut Xml) {
        xml.start("jsdl:JobDescription");
        if self.job_name.is_some() || self.description.is_some() {
            xml.start("jsdl:JobIdentification");
            xml.add("jsdl:JobName", &self.job_name);
            xml.add("jsdl:Description", &self.description);
            xml.end();
        }
        xml.add("jsdl:Application", &self.application);
        if self.resources != Resources::default() {
            xml.add("jsdl:Resources", &self.resources);
        }
        xml.add("jsdl:DataStaging", &self.staging);
        xml.end();
    }
}

impl Readable for Resources {
    fn read(check: &mut DocumentCheck, node: Node<'_>) -> Option<Resources> {
        check.attributes(node, &[]);
        read_children_of_job(check, node, |children| {
            children.optional(JSDL, "ExclusiveExecution", read_simple(parse_boolean));
            children.optional(JSDL, "OperatingSystem", read_operating_system_of_job);
            let cpu_architecture = children.optional(JSDL, "CPUArchitecture", read_architecture_element);
            let mut filters = read_filters_of_job(children, JSDL);
            let nodes = children.optional(JSDL, "TotalResourceCount", RangeValue::read);
            filters.extend(read_filters_of_job(children, BSP));
            Some(Resources {
                cpu_architecture,
                filters,
                nodes,
            })
        })
    }
}

/// The ranges that come next and have elements of a namespace.
fn read_filters_of_job(children: &mut Children<'_, '_>, namespace: &'static str) -> Vec<Filter> {
    let kinds = FilterKind::NAMES.iter();
    kinds
        .filter(|(kind, _)| kind.namespace() == namespace)
        .filter_map(|(kind, name)| {
            let range = children.optional(namespace, name, RangeValue::read)?;
            Some(Filter { kind: *kind, range })
        })
        .collect()
}

/// The architectures of processors that JSDL knows.
pub const ARCHITECTURES: [&str; 10] = [
    "sparc", "powerpc", "x86", "x86_32", "x86_64", "parisc", "mips", "ia64", "arm", "other",
];

/// `jsdl:CPUArchitecture`.
pub(crate) fn read_architecture_element(check: &mut DocumentCheck, node: Node<'_>) -> Option<String> {
    check.children(node, |children| {
        children.required(JSDL, "CPUArchitectureName", read_architecture)
    })
}

fn read_architecture(check: &mut DocumentCheck, node: Node<'_>) -> Option<String> {
    let name = check.string(node)?;
    if !ARCHITECTURES.contains(&name.as_str()) {
        check.value(node, format!("one of {} is expected", ARCHITECTURES.join(", ")));
    }
    Some(name)
}

/// Nodes run Linux: that may be asked for, and nothing else.
pub(crate) fn read_operating_system_of_job(check: &mut DocumentCheck, node: Node<'_>) -> Option<()> {
    check.attributes(node, &[]);
    read_children_of_job(check, node, |children| {
        children.optional(JSDL, "OperatingSystemType", |check, node| {
            check.children(node, |children| {
                let name = children.take_required(JSDL, "OperatingSystemName")?;
                if children.check.string(name)? != "LINUX" {
                    let message = "not supported here: nodes run LINUX";
                    children.check.add(ViolationKind::NotSupported, name, message);
                }
                Some(())
            })
        });
        children.optional(JSDL, "Description", DocumentCheck::string);
        Some(())
    })
}

impl WrittenValue for Resources {
    fn write(&self, xml: &mut Xml) {
        if let Some(name) = &self.cpu_architecture {
            xml.start("jsdl:CPUArchitecture");
            xml.add("jsdl:CPUArchitectureName", name);
            xml.end();
        }
        write_filters_of_job(&self.filters, JSDL, xml);
        xml.add("jsdl:TotalResourceCount", &self.nodes);
        write_filters_of_job(&self.filters, BSP, xml);
    }
}

/// Writes the ranges that have elements of a namespace.
fn write_filters_of_job(filters: &[Filter], namespace: &str, xml: &mut Xml) {
    let kinds = FilterKind::NAMES.iter();
    for (kind, _) in kinds.filter(|(kind, _)| kind.namespace() == namespace) {
        if let Some(filter) = filters.iter().find(|filter| filter.kind == *kind) {
            let declared: &[&str] = if namespace == BSP { &["bsp"] } else { &[] };
            xml.start_with(kind.element(), declared);
            filter.range.write(xml);
            xml.end();
        }
    }
}

impl Readable for DataStaging {
    fn read(check: &mut DocumentCheck, node: Node<'_>) -> Option<DataStaging> {
        check.attributes(node, &[("", "name")]);
        read_children_of_job(check, node, |children| {
            let file_name = children.required(JSDL, "FileName", DocumentCheck::string);
            let creation_flag = children.required(JSDL, "CreationFlag", Readable::read);
            Some(DataStaging {
                delete_on_termination: children.optional(
                    JSDL,
                    "DeleteOnTermination",
                    read_simple(parse_boolean),
                ),
                source: children.optional(JSDL, "Source", read_place_of_job_data),
                target: children.optional(JSDL, "Target", read_place_of_job_data),
                bytes: children.optional(BSP, "Bytes", read_simple(parse_unsigned_integer)),
                file_name: file_name?,
                creation_flag: creation_flag?,
            })
        })
    }
}

/// `jsdl:Source` or `jsdl:Target`.
pub(crate) fn read_place_of_job_data(check: &mut DocumentCheck, node: Node<'_>) -> Option<String> {
    check.children(node, |children| {
        children.required(JSDL, "URI", DocumentCheck::uri)
    })
}

impl WrittenValue for DataStaging {
    fn write(&self, xml: &mut Xml) {
        xml.add("jsdl:FileName", &self.file_name);
        xml.add("jsdl:CreationFlag", &self.creation_flag);
        xml.add("jsdl:DeleteOnTermination", &self.delete_on_termination);
        for (name, uri) in [("jsdl:Source", &self.source), ("jsdl:Target", &self.target)] {
            if let Some(uri) = uri {
                xml.start(name);
                xml.add("jsdl:URI", uri);
                xml.end();
            }
        }
        if let Some(bytes) = self.bytes {
            xml.start_with("bsp:Bytes", &["bsp"]);
            bytes.write(xml);
            xml.end();
        }
    }
}

/// Whether an element has the name of a range that JSDL has no word for.
fn is_own_range(node: Node<'_>) -> bool {
    FilterKind::parse(node.local()).is_some_and(|kind| kind.namespace() == BSP)
}

/// The elements of JSDL that this service does not honour, each with advice.
fn refuse_unsupported_elements_of_job(check: &mut DocumentCheck, node: Node<'_>) {
    const UNSUPPORTED: [(&str, &str, &str); 11] = [
        (JSDL, "CandidateHosts", "nodes are chosen by the provider"),
        (JSDL, "FileSystem", "file systems cannot be asked for"),
        (JSDL, "FilesystemName", "files are in the job's own folder"),
        (
            JSDL,
            "OperatingSystemVersion",
            "the version of the operating system cannot be asked for",
        ),
        (JSDL, "IndividualCPUTime", "time is asked for by arp:Duration"),
        (JSDL, "TotalCPUTime", "time is asked for by arp:Duration"),
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
        (JSDL_POSIX, "UserName", "jobs run as the provider decides"),
        (JSDL_POSIX, "GroupName", "jobs run as the provider decides"),
    ];
    let described = node.is(JSDL, "JobIdentification");
    for child in node.children() {
        let why = match UNSUPPORTED.iter().find(|(ns, name, _)| child.is(ns, name)) {
            Some((.., why)) => why,
            None if child.is(JSDL_POSIX, "POSIXApplication") || child.is(BSP, "Bytes") || described => {
                continue;
            }
            None if child.namespace() == JSDL_POSIX
                && child.local().ends_with("Limit")
                && child.local() != "WallTimeLimit" =>
            {
                "limits are set by the provider"
            }
            None if child.namespace() == BSP && node.is(JSDL, "Resources") && is_own_range(child) => continue,
            // Whatever it is, it would be a part of the work or a condition on its place.
            None if ![JSDL, JSDL_POSIX, ""].contains(&child.namespace()) => {
                "elements of this namespace are not known"
            }
            None => continue,
        };
        check.add(
            ViolationKind::NotSupported,
            child,
            format!("not supported here: {why}"),
        );
    }
}
