//! The type that an element may name with `xsi:type`: the one that the published schemas give it. Another one would make a document
//! invalid that is shown again, and promise a content that is not read.

use crate::xml::datatypes::collapse_space;
use crate::xml::document::Node;
use crate::xml::ns::{self, ARP, JSDL, JSDL_POSIX, WSA, WSAG, WSAG_NEG, XS, XSI};

/// A type: its namespace and its local name.
type TypeName = (&'static str, &'static str);

/// Types of WS-Agreement and of XML Schema, and the elements of WS-Agreement that have them.
const AGREEMENT: [(TypeName, &[&str]); 32] = [
    ((WSAG, "AgreementType"), &["AgreementOffer"]),
    ((WSAG, "AgreementTemplateType"), &["Template"]),
    ((WSAG, "AgreementContextType"), &["Context"]),
    ((WSAG, "AgreementRoleType"), &["ServiceProvider"]),
    ((WSAG, "TermTreeType"), &["Terms"]),
    ((WSAG, "TermCompositorType"), &["All", "ExactlyOne", "OneOrMore"]),
    ((WSAG, "ServiceDescriptionTermType"), &["ServiceDescriptionTerm"]),
    ((WSAG, "ServiceReferenceType"), &["ServiceReference"]),
    ((WSAG, "ServicePropertiesType"), &["ServiceProperties"]),
    ((WSAG, "VariableSetType"), &["VariableSet"]),
    ((WSAG, "VariableType"), &["Variable"]),
    ((WSAG, "GuaranteeTermType"), &["GuaranteeTerm"]),
    ((WSAG, "ServiceSelectorType"), &["ServiceScope"]),
    ((WSAG, "ServiceLevelObjectiveType"), &["ServiceLevelObjective"]),
    ((WSAG, "KPITargetType"), &["KPITarget"]),
    ((WSAG, "BusinessValueListType"), &["BusinessValueList"]),
    ((WSAG, "CompensationType"), &["Penalty", "Reward"]),
    ((WSAG, "PreferenceType"), &["Preference"]),
    ((WSAG, "ConstraintSectionType"), &["CreationConstraints"]),
    ((WSAG, "OfferItemType"), &["Item"]),
    ((WSAG, "NoncriticalExtensionType"), &["NoncriticalExtension"]),
    ((WSAG, "CreateAgreementInputType"), &["CreateAgreementInput"]),
    (
        (WSAG, "CreatePendingAgreementInputType"),
        &["CreatePendingAgreementInput"],
    ),
    ((WSAG, "TerminateInputType"), &["TerminateInput"]),
    (
        (XS, "string"),
        &[
            "Name",
            "TemplateId",
            "TemplateName",
            "Location",
            "KPIName",
            "ValueUnit",
            "ServiceTermReference",
        ],
    ),
    ((XS, "dateTime"), &["ExpirationTime"]),
    ((XS, "integer"), &["Importance"]),
    ((XS, "float"), &["Utility"]),
    ((XS, "duration"), &["TimeInterval"]),
    ((XS, "positiveInteger"), &["Count"]),
    (
        (WSA, "EndpointReferenceType"),
        &["AgreementAcceptanceEPR", "InitiatorAgreementEPR"],
    ),
    ((WSA, "EndpointReferenceType"), &["CreatedAgreementEPR"]),
];

/// The types of WS-Agreement Negotiation, with their elements.
const NEGOTIATION: [(TypeName, &[&str]); 21] = [
    ((WSAG_NEG, "NegotiationContextType"), &["NegotiationContext"]),
    ((WSAG_NEG, "NegotiationType"), &["NegotiationType"]),
    (
        (WSAG_NEG, "NegotiationOfferType"),
        &["NegotiationOffer", "NegotiationCounterOffer"],
    ),
    (
        (WSAG_NEG, "NegotiationOfferContextType"),
        &["NegotiationOfferContext"],
    ),
    (
        (WSAG_NEG, "NegotiationConstraintSectionType"),
        &["NegotiationConstraints"],
    ),
    ((WSAG_NEG, "NegotiationOfferItemType"), &["Item"]),
    (
        (WSAG_NEG, "NegotiationRoleType"),
        &["AgreementResponder", "Creator"],
    ),
    ((WSAG_NEG, "NegotiationOfferStateType"), &["State"]),
    (
        (WSAG_NEG, "InnerNegotiationStateType"),
        &["Advisory", "Solicited", "Acceptable", "Rejected"],
    ),
    ((WSAG_NEG, "NegotiationExtensionType"), &["NegotiationExtension"]),
    (
        (WSAG_NEG, "RenegotiationExtensionType"),
        &["RenegotiationExtension"],
    ),
    (
        (WSAG_NEG, "InitiateNegotiationInputType"),
        &["InitiateNegotiationInput"],
    ),
    ((WSAG_NEG, "NegotiateInputType"), &["NegotiateInput"]),
    ((WSAG_NEG, "NegotiateOutputType"), &["NegotiateOutput"]),
    ((WSAG_NEG, "AdvertiseInputType"), &["AdvertiseInput"]),
    ((WSAG_NEG, "TerminateInputType"), &["TerminateInput"]),
    ((WSAG, "NoncriticalExtensionType"), &["NoncriticalExtension"]),
    ((XS, "string"), &["CounterOfferTo"]),
    ((XS, "dateTime"), &["ExpirationTime"]),
    (
        (WSA, "EndpointReferenceType"),
        &[
            "AgreementFactoryEPR",
            "InitiatorNegotiationEPR",
            "ResponderNegotiationEPR",
            "ResponderAgreementEPR",
            "InitiatorAgreementEPR",
        ],
    ),
    ((WSA, "EndpointReferenceType"), &["CreatedNegotiationEPR"]),
];

/// The types of WS-Addressing, of the advance reservation terms and of the POSIX application.
const OTHERS: [(&str, TypeName, &[&str]); 11] = [
    (WSA, (WSA, "EndpointReferenceType"), &["EndpointReference"]),
    (WSA, (WSA, "AttributedURIType"), &["Address"]),
    (WSA, (WSA, "ReferenceParametersType"), &["ReferenceParameters"]),
    (WSA, (WSA, "MetadataType"), &["Metadata"]),
    (
        ARP,
        (ARP, "AllocationTimeConstraintType"),
        &["AllocationTimeConstraint"],
    ),
    (ARP, (XS, "dateTime"), &["StartTime", "EndTime"]),
    (ARP, (XS, "int"), &["Duration"]),
    (
        JSDL_POSIX,
        (JSDL_POSIX, "POSIXApplication_Type"),
        &["POSIXApplication"],
    ),
    (JSDL_POSIX, (JSDL_POSIX, "Argument_Type"), &["Argument"]),
    (
        JSDL_POSIX,
        (JSDL_POSIX, "FileName_Type"),
        &["Input", "Output", "Error"],
    ),
    (JSDL_POSIX, (JSDL_POSIX, "Limits_Type"), &["WallTimeLimit"]),
];

/// The elements that may be anything.
const ANYTHING: [(&str, &str); 9] = [
    (WSAG, "AgreementInitiator"),
    (WSAG, "AgreementResponder"),
    (WSAG, "QualifyingCondition"),
    (WSAG, "CustomServiceLevel"),
    (WSAG, "ValueExpression"),
    (WSAG, "CustomBusinessValue"),
    (WSAG, "Constraint"),
    (WSAG_NEG, "NegotiationInitiator"),
    (WSAG_NEG, "NegotiationResponder"),
];

/// Whether the text of an `xsi:type` names a type that the element may have: its own, or a string where it may be anything and has no
/// other attribute. That it is a string then is checked where it is read.
pub(crate) fn is_allowed_type(node: Node<'_>, text: &str) -> bool {
    let text = collapse_space(text);
    let (prefix, local) = text.split_once(':').unwrap_or(("", &text));
    let Some(namespace) = node.resolve(prefix) else {
        return false;
    };
    let name = (node.namespace(), node.local());
    let is_anything = ANYTHING.contains(&name) || ns::usual_prefix(name.0).is_none();
    if is_anything {
        let is_alone = node.attributes().all(|(namespace, ..)| namespace == XSI);
        return is_alone && (namespace, local) == (XS, "string");
    }
    let is_it = |(type_namespace, type_name): &TypeName| (namespace, local) == (*type_namespace, *type_name);
    match name {
        (WSAG, name) => has_type(AGREEMENT.iter().copied(), name, is_it),
        (WSAG_NEG, name) => has_type(NEGOTIATION.iter().copied(), name, is_it),
        (JSDL, name) => is_type_of_job(name, (namespace, local)),
        (type_namespace, name) => {
            let own = OTHERS
                .iter()
                .filter(|(namespace, ..)| *namespace == type_namespace);
            has_type(own.map(|(_, each, elements)| (*each, *elements)), name, is_it)
        }
    }
}

fn has_type(
    types: impl Iterator<Item = (TypeName, &'static [&'static str])>,
    element: &str,
    is_it: impl Fn(&TypeName) -> bool,
) -> bool {
    types
        .filter(|(_, elements)| elements.contains(&element))
        .any(|(one_type, _)| is_it(&one_type))
}

/// Whether a type is that of an element of JSDL. Most are named as their elements.
fn is_type_of_job(element: &str, (namespace, local): (&str, &str)) -> bool {
    let own = match element {
        "JobName" | "JobAnnotation" | "JobProject" | "ApplicationName" | "ApplicationVersion"
        | "FileName" => {
            return (namespace, local) == (XS, "string");
        }
        "ExclusiveExecution" | "DeleteOnTermination" => return (namespace, local) == (XS, "boolean"),
        "URI" => return (namespace, local) == (XS, "anyURI"),
        "CPUArchitectureName" => "ProcessorArchitectureEnumeration",
        "OperatingSystemName" => "OperatingSystemTypeEnumeration",
        "CreationFlag" => "CreationFlagEnumeration",
        "Source" | "Target" => "SourceTarget_Type",
        "LowerBound" | "UpperBound" | "LowerBoundedRange" | "UpperBoundedRange" => "Boundary_Type",
        range if range.starts_with("Individual") || range.starts_with("Total") => "RangeValue_Type",
        other => return namespace == JSDL && local.strip_suffix("_Type") == Some(other),
    };
    (namespace, local) == (JSDL, own)
}
