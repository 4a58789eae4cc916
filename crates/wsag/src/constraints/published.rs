//! Types of the published schemas that a template may name, as it names those of XML Schema.
//!
//! A simple type is a list of names. A type with children is what the reader of such an element takes, so it is as strict as the
//! profile of `docs/design/protocol.md`.

use crate::agreements::{Context, Role};
use crate::allocation::AllocationTimeConstraint;
use crate::endpoint::EndpointReference;
use crate::guarantees::{
    BusinessValueList, Compensation, GuaranteeTerm, Obligated, ServiceLevelObjective, ServiceScope,
    Utilities, read_target,
};
use crate::job::{
    ARCHITECTURES, Application, Bound, CreationFlag, DataStaging, Exact, JobDefinition, PosixApplication,
    RangeValue, Resources, read_architecture_element, read_identification, read_job_description,
    read_operating_system, read_place,
};
use crate::negotiations::{NegotiationRole, Requirement, read_noncritical};
use crate::states::{AgreementState, GuaranteeState};
use crate::terms::{
    Terms, Variable, read_compositor, read_description_term, read_properties_term, read_reference_term,
    read_variables,
};
use crate::xml::ns::{self, ARP, JSDL, JSDL_POSIX, WSA, WSAG, WSAG_NEG};
use crate::xml::{DocumentCheck, NamedValue, Node, Readable};

/// A type of the published schemas.
pub(super) enum PublishedType {
    /// A text that is one of these names.
    Names(fn() -> Vec<&'static str>),
    /// Any text.
    Text,
    /// What this reads without a violation.
    Content(fn(&mut DocumentCheck, Node<'_>)),
}

use PublishedType::{Content, Names, Text};

static TYPES: [(&str, &str, PublishedType); 49] = [
    (WSAG, "AgreementRoleType", Names(names_of::<Role>)),
    (WSAG, "ServiceRoleType", Names(names_of::<Obligated>)),
    (
        WSAG,
        "AgreementStateDefinition",
        Names(names_of::<AgreementState>),
    ),
    (
        WSAG,
        "GuaranteeTermStateDefinition",
        Names(names_of::<GuaranteeState>),
    ),
    (
        WSAG,
        "ServiceTermStateDefinition",
        Names(|| vec!["NotReady", "Ready", "Completed"]),
    ),
    (WSAG, "AgreementContextType", Content(read::<Context>)),
    (WSAG, "TermTreeType", Content(read::<Terms>)),
    (
        WSAG,
        "TermCompositorType",
        Content(|check, node| ignore(read_compositor(check, node))),
    ),
    (
        WSAG,
        "ServiceDescriptionTermType",
        Content(|check, node| ignore(read_description_term(check, node))),
    ),
    (
        WSAG,
        "ServiceReferenceType",
        Content(|check, node| ignore(read_reference_term(check, node))),
    ),
    (
        WSAG,
        "ServicePropertiesType",
        Content(|check, node| ignore(read_properties_term(check, node))),
    ),
    (
        WSAG,
        "VariableSetType",
        Content(|check, node| ignore(read_variables(check, node))),
    ),
    (
        WSAG,
        "KPITargetType",
        Content(|check, node| ignore(read_target(check, node))),
    ),
    (WSAG, "PreferenceType", Content(read::<Utilities>)),
    (
        WSAG,
        "NoncriticalExtensionType",
        Content(|check, node| ignore(read_noncritical(check, node))),
    ),
    (WSAG, "VariableType", Content(read::<Variable>)),
    (WSAG, "GuaranteeTermType", Content(read::<GuaranteeTerm>)),
    (WSAG, "ServiceSelectorType", Content(read::<ServiceScope>)),
    (
        WSAG,
        "ServiceLevelObjectiveType",
        Content(read::<ServiceLevelObjective>),
    ),
    (WSAG, "BusinessValueListType", Content(read::<BusinessValueList>)),
    (WSAG, "CompensationType", Content(read::<Compensation>)),
    (
        WSAG_NEG,
        "NegotiationRoleType",
        Names(names_of::<NegotiationRole>),
    ),
    (
        WSAG_NEG,
        "NegotiationConstraintType",
        Names(names_of::<Requirement>),
    ),
    (WSA, "EndpointReferenceType", Content(read::<EndpointReference>)),
    (
        ARP,
        "AllocationTimeConstraintType",
        Content(read::<AllocationTimeConstraint>),
    ),
    (
        JSDL,
        "ProcessorArchitectureEnumeration",
        Names(|| ARCHITECTURES.to_vec()),
    ),
    (
        JSDL,
        "OperatingSystemTypeEnumeration",
        Names(|| OPERATING_SYSTEMS.to_vec()),
    ),
    (
        JSDL,
        "FileSystemTypeEnumeration",
        Names(|| vec!["swap", "temporary", "spool", "normal"]),
    ),
    (JSDL, "CreationFlagEnumeration", Names(names_of::<CreationFlag>)),
    (JSDL, "Description_Type", Text),
    (JSDL, "JobDefinition_Type", Content(read::<JobDefinition>)),
    (
        JSDL,
        "JobDescription_Type",
        Content(|check, node| ignore(read_job_description(check, node))),
    ),
    (
        JSDL,
        "JobIdentification_Type",
        Content(|check, node| ignore(read_identification(check, node))),
    ),
    (JSDL, "Application_Type", Content(read::<Application>)),
    (JSDL, "Resources_Type", Content(read::<Resources>)),
    (
        JSDL,
        "CPUArchitecture_Type",
        Content(|check, node| ignore(read_architecture_element(check, node))),
    ),
    (
        JSDL,
        "OperatingSystem_Type",
        Content(|check, node| ignore(read_operating_system(check, node))),
    ),
    (JSDL, "RangeValue_Type", Content(read::<RangeValue>)),
    (JSDL, "Range_Type", Content(read::<(Bound, Bound)>)),
    (JSDL, "Boundary_Type", Content(read::<Bound>)),
    (JSDL, "Exact_Type", Content(read::<Exact>)),
    (JSDL, "DataStaging_Type", Content(read::<DataStaging>)),
    (
        JSDL,
        "SourceTarget_Type",
        Content(|check, node| ignore(read_place(check, node))),
    ),
    (
        JSDL_POSIX,
        "POSIXApplication_Type",
        Content(read::<PosixApplication>),
    ),
    (JSDL_POSIX, "Argument_Type", Content(read::<String>)),
    (JSDL_POSIX, "FileName_Type", Content(read::<String>)),
    (JSDL_POSIX, "DirectoryName_Type", Content(read::<String>)),
    (JSDL_POSIX, "UserName_Type", Content(read::<String>)),
    (JSDL_POSIX, "GroupName_Type", Content(read::<String>)),
];

/// The operating systems that JSDL knows.
const OPERATING_SYSTEMS: [&str; 69] = [
    "Unknown",
    "MACOS",
    "ATTUNIX",
    "DGUX",
    "DECNT",
    "Tru64_UNIX",
    "OpenVMS",
    "HPUX",
    "AIX",
    "MVS",
    "OS400",
    "OS_2",
    "JavaVM",
    "MSDOS",
    "WIN3x",
    "WIN95",
    "WIN98",
    "WINNT",
    "WINCE",
    "NCR3000",
    "NetWare",
    "OSF",
    "DC_OS",
    "Reliant_UNIX",
    "SCO_UnixWare",
    "SCO_OpenServer",
    "Sequent",
    "IRIX",
    "Solaris",
    "SunOS",
    "U6000",
    "ASERIES",
    "TandemNSK",
    "TandemNT",
    "BS2000",
    "LINUX",
    "Lynx",
    "XENIX",
    "VM",
    "Interactive_UNIX",
    "BSDUNIX",
    "FreeBSD",
    "NetBSD",
    "GNU_Hurd",
    "OS9",
    "MACH_Kernel",
    "Inferno",
    "QNX",
    "EPOC",
    "IxWorks",
    "VxWorks",
    "MiNT",
    "BeOS",
    "HP_MPE",
    "NextStep",
    "PalmPilot",
    "Rhapsody",
    "Windows_2000",
    "Dedicated",
    "OS_390",
    "VSE",
    "TPF",
    "Windows_R_Me",
    "Caldera_Open_UNIX",
    "OpenBSD",
    "Not_Applicable",
    "Windows_XP",
    "z_OS",
    "other",
];

/// The published type of this name.
pub(super) fn find(namespace: &str, local: &str) -> Option<&'static PublishedType> {
    let mut types = TYPES.iter();
    let found = types.find(|(one_type, name, _)| *one_type == namespace && *name == local);
    found.map(|(_, _, published)| published)
}

/// The namespace and the local name of a type's name at an element. None where its prefix is not declared.
pub(super) fn resolve<'n>(name: &'n str, scope: Node<'n>) -> Option<(&'n str, &'n str)> {
    let (prefix, local) = name.split_once(':').unwrap_or(("", name));
    let usual = || ns::namespace_of_prefix(prefix);
    Some((scope.resolve(prefix).or_else(usual)?, local))
}

fn names_of<T: NamedValue>() -> Vec<&'static str> {
    T::NAMES.iter().map(|(_, name)| *name).collect()
}

fn read<T: Readable>(check: &mut DocumentCheck, node: Node<'_>) {
    ignore(T::read(check, node));
}

/// The value of what was read does not matter here, only its violations.
fn ignore<T>(_: Option<T>) {}
