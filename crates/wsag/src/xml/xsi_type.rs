//! The type that an element may name with `xsi:type`: the one that the published schemas give it. Another one would make a document
//! invalid that is shown again, and promise a content that is not read.

use crate::xml::datatypes::collapse_space;
use crate::xml::node::Node;
use crate::xml::ns::{self, ARP, JSDL, JSDL_POSIX, WSA, WSAG, WSAG_NEG, XS, XSI};

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
pub(crate) fn is_allowed_xsi_type(node: Node<'_>, text: &str) -> bool {
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
    is_xsi_type_of_element(name, (namespace, local))
}

/// Whether a type is the one that the schemas give an element. Most types are named as their elements.
fn is_xsi_type_of_element(element: (&str, &str), (namespace, local): (&str, &str)) -> bool {
    let is_named_as_element =
        |suffix| namespace == element.0 && local.strip_suffix(suffix) == Some(element.1);
    let own = match element.0 {
        WSAG => match element.1 {
            "AgreementOffer" => (WSAG, "AgreementType"),
            "Template" => (WSAG, "AgreementTemplateType"),
            "Context" => (WSAG, "AgreementContextType"),
            "ServiceProvider" => (WSAG, "AgreementRoleType"),
            "Terms" => (WSAG, "TermTreeType"),
            "All" | "ExactlyOne" | "OneOrMore" => (WSAG, "TermCompositorType"),
            "ServiceScope" => (WSAG, "ServiceSelectorType"),
            "Penalty" | "Reward" => (WSAG, "CompensationType"),
            "CreationConstraints" => (WSAG, "ConstraintSectionType"),
            "Item" => (WSAG, "OfferItemType"),
            "Name"
            | "TemplateId"
            | "TemplateName"
            | "Location"
            | "KPIName"
            | "ValueUnit"
            | "ServiceTermReference" => (XS, "string"),
            "ExpirationTime" => (XS, "dateTime"),
            "Importance" => (XS, "integer"),
            "Utility" => (XS, "float"),
            "TimeInterval" => (XS, "duration"),
            "Count" => (XS, "positiveInteger"),
            "AgreementAcceptanceEPR" | "InitiatorAgreementEPR" | "CreatedAgreementEPR" => {
                (WSA, "EndpointReferenceType")
            }
            "ServiceDescriptionTerm"
            | "ServiceReference"
            | "ServiceProperties"
            | "VariableSet"
            | "Variable"
            | "GuaranteeTerm"
            | "ServiceLevelObjective"
            | "KPITarget"
            | "BusinessValueList"
            | "Preference"
            | "NoncriticalExtension"
            | "CreateAgreementInput"
            | "CreatePendingAgreementInput"
            | "TerminateInput" => return is_named_as_element("Type"),
            _ => return false,
        },
        WSAG_NEG => match element.1 {
            "NegotiationType" => (WSAG_NEG, "NegotiationType"),
            "NegotiationCounterOffer" => (WSAG_NEG, "NegotiationOfferType"),
            "NegotiationConstraints" => (WSAG_NEG, "NegotiationConstraintSectionType"),
            "Item" => (WSAG_NEG, "NegotiationOfferItemType"),
            "AgreementResponder" | "Creator" => (WSAG_NEG, "NegotiationRoleType"),
            "State" => (WSAG_NEG, "NegotiationOfferStateType"),
            "Advisory" | "Solicited" | "Acceptable" | "Rejected" => (WSAG_NEG, "InnerNegotiationStateType"),
            "NoncriticalExtension" => (WSAG, "NoncriticalExtensionType"),
            "CounterOfferTo" => (XS, "string"),
            "ExpirationTime" => (XS, "dateTime"),
            "AgreementFactoryEPR"
            | "InitiatorNegotiationEPR"
            | "ResponderNegotiationEPR"
            | "ResponderAgreementEPR"
            | "InitiatorAgreementEPR"
            | "CreatedNegotiationEPR" => (WSA, "EndpointReferenceType"),
            "NegotiationContext"
            | "NegotiationOffer"
            | "NegotiationOfferContext"
            | "NegotiationExtension"
            | "RenegotiationExtension"
            | "InitiateNegotiationInput"
            | "NegotiateInput"
            | "NegotiateOutput"
            | "AdvertiseInput"
            | "TerminateInput" => return is_named_as_element("Type"),
            _ => return false,
        },
        JSDL => return is_xsi_type_of_job(element.1, (namespace, local)),
        _ => match element {
            (WSA, "Address") => (WSA, "AttributedURIType"),
            (ARP, "StartTime" | "EndTime") => (XS, "dateTime"),
            (ARP, "Duration") => (XS, "int"),
            (JSDL_POSIX, "Input" | "Output" | "Error") => (JSDL_POSIX, "FileName_Type"),
            (JSDL_POSIX, "WallTimeLimit") => (JSDL_POSIX, "Limits_Type"),
            (JSDL_POSIX, "POSIXApplication" | "Argument") => return is_named_as_element("_Type"),
            (WSA, "EndpointReference" | "ReferenceParameters" | "Metadata")
            | (ARP, "AllocationTimeConstraint") => return is_named_as_element("Type"),
            _ => return false,
        },
    };
    (namespace, local) == own
}

/// Whether a type is that of an element of JSDL. Most are named as their elements.
fn is_xsi_type_of_job(element: &str, (namespace, local): (&str, &str)) -> bool {
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
