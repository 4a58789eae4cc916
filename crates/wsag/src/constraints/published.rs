//! Types of the published schemas that a template may name, as it names those of XML Schema.
//!
//! A simple type is a list of names. A type with children is what the reader of such an element takes, so it is as strict as the
//! profile of `docs/design/protocol.md`.

use crate::agreement_state::AgreementState;
use crate::agreements::{Context, Role};
use crate::endpoint::EndpointReference;
use crate::guarantees::{
    BusinessValueList, Compensation, GuaranteeTerm, GuaranteeUtilities, Obligated, ServiceLevelObjective,
    ServiceScope, read_target_of_guarantee,
};
use crate::job_definition::{
    ARCHITECTURES, Application, Bound, CreationFlag, DataStaging, Exact, JobDefinition, PosixApplication,
    RangeValue, Resources, read_architecture_element, read_identification_of_job, read_job_description,
    read_operating_system_of_job, read_place_of_job_data,
};
use crate::negotiations::{NegotiationRole, Requirement, read_noncritical_negotiation_extension};
use crate::scheduling::AllocationTimeConstraint;
use crate::states::GuaranteeState;
use crate::terms::{
    Terms, Variable, read_compositor_of_terms, read_description_term, read_properties_term,
    read_reference_term, read_variables_of_term,
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

/// Finds published types by their names.
macro_rules! published_types {
    ($($namespace:ident { $($local:literal: $kind:ident($($what:tt)*),)+ })+) => {
        /// The published type of this name.
        pub(super) fn find_published_type(namespace: &str, local: &str) -> Option<&'static PublishedType> {
            match (namespace, local) {
                $($(($namespace, $local) => Some(const { &published_types!(@$kind $($what)*) }),)+)+
                _ => None,
            }
        }
    };
    (@names $type:ty) => { PublishedType::Names(published_names_of::<$type>) };
    (@one_of $names:expr) => { PublishedType::Names(|| $names) };
    (@text) => { PublishedType::Text };
    (@content $type:ty) => { PublishedType::Content(read_published::<$type>) };
    (@read_by $read:ident) => { PublishedType::Content(|check, node| ignore($read(check, node))) };
}

published_types! {
    WSAG {
        "AgreementRoleType": names(Role),
        "ServiceRoleType": names(Obligated),
        "AgreementStateDefinition": names(AgreementState),
        "GuaranteeTermStateDefinition": names(GuaranteeState),
        "ServiceTermStateDefinition": one_of(vec!["NotReady", "Ready", "Completed"]),
        "AgreementContextType": content(Context),
        "TermTreeType": content(Terms),
        "TermCompositorType": read_by(read_compositor_of_terms),
        "ServiceDescriptionTermType": read_by(read_description_term),
        "ServiceReferenceType": read_by(read_reference_term),
        "ServicePropertiesType": read_by(read_properties_term),
        "VariableSetType": read_by(read_variables_of_term),
        "KPITargetType": read_by(read_target_of_guarantee),
        "PreferenceType": content(GuaranteeUtilities),
        "NoncriticalExtensionType": read_by(read_noncritical_negotiation_extension),
        "VariableType": content(Variable),
        "GuaranteeTermType": content(GuaranteeTerm),
        "ServiceSelectorType": content(ServiceScope),
        "ServiceLevelObjectiveType": content(ServiceLevelObjective),
        "BusinessValueListType": content(BusinessValueList),
        "CompensationType": content(Compensation),
    }
    WSAG_NEG {
        "NegotiationRoleType": names(NegotiationRole),
        "NegotiationConstraintType": names(Requirement),
    }
    WSA {
        "EndpointReferenceType": content(EndpointReference),
    }
    ARP {
        "AllocationTimeConstraintType": content(AllocationTimeConstraint),
    }
    JSDL {
        "ProcessorArchitectureEnumeration": one_of(ARCHITECTURES.to_vec()),
        "OperatingSystemTypeEnumeration": one_of(OPERATING_SYSTEMS.to_vec()),
        "FileSystemTypeEnumeration": one_of(vec!["swap", "temporary", "spool", "normal"]),
        "CreationFlagEnumeration": names(CreationFlag),
        "Description_Type": text(),
        "JobDefinition_Type": content(JobDefinition),
        "JobDescription_Type": read_by(read_job_description),
        "JobIdentification_Type": read_by(read_identification_of_job),
        "Application_Type": content(Application),
        "Resources_Type": content(Resources),
        "CPUArchitecture_Type": read_by(read_architecture_element),
        "OperatingSystem_Type": read_by(read_operating_system_of_job),
        "RangeValue_Type": content(RangeValue),
        "Range_Type": content((Bound, Bound)),
        "Boundary_Type": content(Bound),
        "Exact_Type": content(Exact),
        "DataStaging_Type": content(DataStaging),
        "SourceTarget_Type": read_by(read_place_of_job_data),
    }
    JSDL_POSIX {
        "POSIXApplication_Type": content(PosixApplication),
        "Argument_Type": content(String),
        "FileName_Type": content(String),
        "DirectoryName_Type": content(String),
        "UserName_Type": content(String),
        "GroupName_Type": content(String),
    }
}

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

/// The namespace and the local name of a type's name at an element. None where its prefix is not declared.
pub(super) fn resolve_published_name<'n>(name: &'n str, scope: Node<'n>) -> Option<(&'n str, &'n str)> {
    let (prefix, local) = name.split_once(':').unwrap_or(("", name));
    let usual = || ns::namespace_of_prefix(prefix);
    Some((scope.resolve(prefix).or_else(usual)?, local))
}

fn published_names_of<T: NamedValue>() -> Vec<&'static str> {
    T::NAMES.iter().map(|(_, name)| *name).collect()
}

fn read_published<T: Readable>(check: &mut DocumentCheck, node: Node<'_>) {
    ignore(T::read(check, node));
}

/// The value of what was read does not matter here, only its violations.
fn ignore<T>(_: Option<T>) {}
