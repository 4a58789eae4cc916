//! Random documents of every kind, with every character that must be escaped.

#![expect(clippy::unwrap_used, reason = "the values made here are valid")]

use super::Chance;
use wsag::Fragment;
use wsag::agreements::{AgreementOffer, Context, Role};
use wsag::budget::Budget;
use wsag::endpoint::EndpointReference;
use wsag::expression::Expression;
use wsag::guarantees::{
    AssessmentInterval, BusinessValueList, Compensation, GuaranteeTerm, GuaranteeUtilities, Obligated,
    ServiceLevelObjective, ServiceScope,
};
use wsag::job_definition::{
    Application, Bound, CreationFlag, DataStaging, Exact, Filter, FilterKind, JobDefinition,
    PosixApplication, RangeValue, Resources,
};
use wsag::negotiations::{
    NegotiationConstraints, NegotiationContext, NegotiationExtension, NegotiationItem, NegotiationKind,
    NegotiationOffer, NegotiationOfferContext, NegotiationRole, OfferState, RenegotiationExtension,
    Requirement,
};
use wsag::operations::CreateInput;
use wsag::scheduling::AllocationTimeConstraint;
use wsag::scheduling::{Moldability, Preemption, Preference, Scheduling, ShapeChanges};
use wsag::terms::{
    ServiceDescription, ServiceDescriptionTerm, ServiceProperties, ServiceReference, Term, TermTree, Terms,
    Variable,
};
use wsag::time::{DateTime, Duration};

/// Random documents of every kind.
pub(crate) struct DocumentMaker(pub(crate) Chance);

impl DocumentMaker {
    pub(crate) fn flag(&mut self) -> bool {
        self.0.below(2) == 0
    }

    pub(crate) fn maybe<T>(&mut self, make: impl FnOnce(&mut DocumentMaker) -> T) -> Option<T> {
        if self.flag() { Some(make(self)) } else { None }
    }

    pub(crate) fn some<T>(&mut self, least: usize, make: impl Fn(&mut DocumentMaker) -> T) -> Vec<T> {
        (0..least + self.0.below(3)).map(|_| make(self)).collect()
    }

    /// Text with everything that must be escaped.
    pub(crate) fn text(&mut self) -> String {
        const PIECES: [&str; 14] = [
            "a",
            "<b>",
            "&amp;",
            "]]>",
            "\"",
            "'",
            " ",
            "\n",
            "\t",
            "\r",
            "ä",
            "\u{1F680}",
            "--",
            "{$x}",
        ];
        (0..self.0.below(6)).map(|_| *self.0.pick(&PIECES)).collect()
    }

    /// A name: not empty, no white space at its ends.
    pub(crate) fn name(&mut self) -> String {
        const PIECES: [&str; 8] = ["a", "B", "-", "<", "&", "\"", "ß", "7"];
        (0..=self.0.below(5)).map(|_| *self.0.pick(&PIECES)).collect()
    }

    pub(crate) fn time(&mut self) -> DateTime {
        const ENDS: [&str; 4] = [
            "0001-01-01T00:00:00Z",
            "0001-01-01T14:00:00.000000001+14:00",
            "9999-12-31T23:59:59.999999999Z",
            "9999-12-31T09:59:59-14:00",
        ];
        if self.is_at_an_end() {
            return self.0.pick(&ENDS).parse().unwrap();
        }
        let micros = i64::try_from(self.0.next() % 10_000_000_000_000_000).unwrap();
        if self.flag() {
            DateTime::from_micros(micros)
        } else {
            DateTime::from_seconds(micros / 1_000_000)
        }
    }

    /// A duration of any numbers, as far as it is read.
    pub(crate) fn duration(&mut self) -> Duration {
        const NUMBERS: [u32; 8] = [0, 1, 11, 12, 24, 59, 60, 999_999_999];
        const FRACTIONS: [&str; 3] = ["", ".5", ".999999999"];
        loop {
            let mut text = (*self.0.pick(&["P", "-P"])).to_owned();
            for designator in ["Y", "M", "DT", "H", "M"] {
                text += &format!("{}{designator}", self.0.pick(&NUMBERS));
            }
            text += &format!("{}{}S", self.0.pick(&NUMBERS), self.0.pick(&FRACTIONS));
            if let Ok(duration) = text.parse() {
                return duration;
            }
        }
    }

    /// Whether a value lies at an end of what the reader takes.
    fn is_at_an_end(&mut self) -> bool {
        self.0.below(8) == 0
    }

    pub(crate) fn count(&mut self) -> u32 {
        if self.is_at_an_end() {
            return *self.0.pick(&[1, u32::MAX]);
        }
        u32::try_from(1 + self.0.below(4_294_967_295)).unwrap()
    }

    pub(crate) fn number(&mut self) -> f64 {
        if self.is_at_an_end() {
            return *self
                .0
                .pick(&[5e-324, f64::MIN_POSITIVE, 9_007_199_254_740_992.0, f64::MAX]);
        }
        f64::from(self.count()) / f64::from(self.count())
    }

    pub(crate) fn whole(&mut self) -> u64 {
        if self.is_at_an_end() {
            return *self.0.pick(&[1, u64::MAX]);
        }
        u64::from(self.count()) << 20
    }

    pub(crate) fn share(&mut self) -> f64 {
        f64::from(u32::try_from(1 + self.0.below(1000)).unwrap()) / 1000.0
    }

    pub(crate) fn fragment(&mut self) -> Fragment {
        let texts = [
            "<x:a xmlns:x=\"urn:x\" x:b='1'>t &amp; u</x:a>",
            "<y xmlns=\"urn:y\"><z/><!-- c --></y>",
        ];
        let text: &str = self.0.pick::<&str>(&texts);
        Fragment::parse(text).unwrap()
    }

    pub(crate) fn party(name: &str) -> Fragment {
        let ns = wsag::ns::WSAG;
        Fragment::parse(&format!(
            "<wsag:{name} xmlns:wsag=\"{ns}\">CN=a &lt; b</wsag:{name}>"
        ))
        .unwrap()
    }

    pub(crate) fn endpoint(&mut self) -> EndpointReference {
        let mut endpoint = EndpointReference::new(self.name());
        endpoint.rest = self.some(0, DocumentMaker::fragment);
        endpoint
    }

    pub(crate) fn context(&mut self) -> Context {
        Context {
            agreement_initiator: self.maybe(|_| DocumentMaker::party("AgreementInitiator")),
            agreement_responder: self.maybe(|_| DocumentMaker::party("AgreementResponder")),
            service_provider: if self.flag() {
                Role::AgreementInitiator
            } else {
                Role::AgreementResponder
            },
            expiration_time: self.maybe(DocumentMaker::time),
            template_id: self.maybe(DocumentMaker::name),
            template_name: self.maybe(DocumentMaker::name),
            extensions: self.some(0, DocumentMaker::fragment),
        }
    }

    pub(crate) fn bound(&mut self) -> Bound {
        Bound {
            value: self.number(),
            exclusive: self.flag(),
        }
    }

    pub(crate) fn range(&mut self) -> RangeValue {
        RangeValue {
            upper: self.maybe(DocumentMaker::bound),
            lower: self.maybe(DocumentMaker::bound),
            exact: self.some(0, |make| Exact {
                value: make.number(),
                epsilon: make.maybe(DocumentMaker::number),
            }),
            ranges: self.some(0, |make| (make.bound(), make.bound())),
        }
    }

    pub(crate) fn job(&mut self) -> JobDefinition {
        let kinds = [
            FilterKind::IndividualCpuSpeed,
            FilterKind::IndividualPhysicalMemory,
            FilterKind::TotalDiskSpace,
        ];
        let kinds: Vec<FilterKind> = kinds.into_iter().filter(|_| self.flag()).collect();
        JobDefinition {
            job_name: self.maybe(DocumentMaker::text),
            description: self.maybe(DocumentMaker::text),
            application: self.maybe(|make| Application {
                name: make.text(),
                version: make.maybe(DocumentMaker::text),
                description: make.maybe(DocumentMaker::text),
                posix: make.maybe(|make| PosixApplication {
                    arguments: make.some(0, DocumentMaker::text),
                    input: make.maybe(DocumentMaker::text),
                    output: make.maybe(DocumentMaker::text),
                    error: make.maybe(DocumentMaker::text),
                    wall_time_limit: make.maybe(DocumentMaker::whole),
                }),
            }),
            resources: Resources {
                cpu_architecture: self.maybe(|make| (*make.0.pick(&["x86_64", "arm", "other"])).to_owned()),
                filters: kinds
                    .into_iter()
                    .map(|kind| Filter {
                        kind,
                        range: self.range(),
                    })
                    .collect(),
                nodes: self.maybe(DocumentMaker::range),
            },
            staging: self.some(0, |make| DataStaging {
                file_name: make.text(),
                creation_flag: *make.0.pick(&[
                    CreationFlag::Overwrite,
                    CreationFlag::DontOverwrite,
                    CreationFlag::Append,
                ]),
                delete_on_termination: make.maybe(DocumentMaker::flag),
                source: make.maybe(DocumentMaker::name),
                target: make.maybe(DocumentMaker::name),
                bytes: make.maybe(DocumentMaker::whole),
            }),
        }
    }

    pub(crate) fn scheduling(&mut self) -> Scheduling {
        Scheduling {
            moldability: self.maybe(|make| match make.0.below(3) {
                0 => Moldability::Linear {
                    intercept: make.number(),
                    slope: make.number(),
                },
                1 => Moldability::Table(make.some(1, |make| (make.count(), make.count()))),
                _ => Moldability::ConstantWork(make.number()),
            }),
            preemption: self.maybe(|make| Preemption {
                pieces: make.count(),
                interval: make.share(),
                independent: make.flag(),
            }),
            budget: self.maybe(DocumentMaker::budget),
            max_deviation: self.maybe(DocumentMaker::number),
            fix_at: self.maybe(DocumentMaker::share),
            preference: self.maybe(|make| Preference {
                start: make.maybe(DocumentMaker::number),
                size: make.maybe(DocumentMaker::number),
                duration: make.maybe(DocumentMaker::number),
                price: make.maybe(DocumentMaker::number),
            }),
            resource: self.maybe(DocumentMaker::text),
            may_change: self.maybe(DocumentMaker::shape_changes),
        }
    }

    pub(crate) fn shape_changes(&mut self) -> ShapeChanges {
        ShapeChanges {
            sizes: self.flag(),
            cuts: self.flag(),
            until: self.maybe(DocumentMaker::time),
        }
    }

    pub(crate) fn budget(&mut self) -> Budget {
        let amount = if self.is_at_an_end() {
            999_999_999_999_999_999
        } else {
            i64::try_from(self.0.next() % 1_000_000_000_000_000_000).unwrap()
        };
        Budget {
            amount_micros: if self.flag() { -amount } else { amount },
            currency: "EUR".to_owned(),
        }
    }

    pub(crate) fn expression(&mut self) -> Expression {
        Expression {
            text: self.text(),
            dialect: self.maybe(DocumentMaker::text),
        }
    }

    pub(crate) fn compensation(&mut self) -> Compensation {
        Compensation {
            interval: if self.flag() {
                AssessmentInterval::Time(self.duration())
            } else {
                AssessmentInterval::Count(self.count())
            },
            unit: self.maybe(DocumentMaker::text),
            value: self.expression(),
        }
    }

    pub(crate) fn guarantee(&mut self) -> GuaranteeTerm {
        GuaranteeTerm {
            name: self.name(),
            obligated: if self.flag() {
                Obligated::ServiceConsumer
            } else {
                Obligated::ServiceProvider
            },
            scopes: self.some(0, |make| ServiceScope {
                service_name: make.maybe(DocumentMaker::name),
                parts: make.some(0, DocumentMaker::fragment),
            }),
            qualifying_condition: self.maybe(DocumentMaker::expression),
            objective: ServiceLevelObjective {
                kpi_name: self.maybe(DocumentMaker::text),
                level: self.expression(),
            },
            values: BusinessValueList {
                importance: self.maybe(|make| {
                    let count = i64::from(make.count());
                    *make.0.pick(&[count, i64::MIN, i64::MAX])
                }),
                penalties: self.some(0, DocumentMaker::compensation),
                rewards: self.some(0, DocumentMaker::compensation),
                preference: {
                    let terms = self.some(0, |make| (make.name(), make.number()));
                    (!terms.is_empty()).then_some(GuaranteeUtilities(terms))
                },
                custom: self.some(0, |_| DocumentMaker::party("CustomBusinessValue")),
            },
        }
    }

    pub(crate) fn term(&mut self) -> Term {
        let (name, service_name) = (self.name(), self.name());
        match self.0.below(6) {
            0 => Term::ServiceReference(ServiceReference {
                name,
                service_name,
                reference: self.endpoint(),
            }),
            1 => Term::ServiceProperties(ServiceProperties {
                name,
                service_name,
                variables: self.some(1, |make| Variable {
                    name: make.maybe(DocumentMaker::name),
                    metric: make.maybe(DocumentMaker::name),
                    location: make.text(),
                }),
            }),
            2 => Term::Guarantee(self.guarantee()),
            kind => Term::ServiceDescription(ServiceDescriptionTerm {
                name,
                service_name,
                is_wsag4j: false,
                content: match kind {
                    3 => ServiceDescription::JobDefinition(Box::new(self.job())),
                    4 => ServiceDescription::Scheduling(Box::new(self.scheduling())),
                    _ => ServiceDescription::AllocationTime(AllocationTimeConstraint {
                        start: self.maybe(DocumentMaker::time),
                        end: self.maybe(DocumentMaker::time),
                        duration: self.maybe(|make| *make.0.pick(&[0, 60, 3_600, 86_399, i32::MAX])),
                    }),
                },
            }),
        }
    }

    pub(crate) fn tree(&mut self, depth: usize) -> TermTree {
        if depth == 3 || self.0.below(3) > 0 {
            return TermTree::Term(Box::new(self.term()));
        }
        let members = self.some(1, |make| make.tree(depth + 1));
        match self.0.below(3) {
            0 => TermTree::All(members),
            1 => TermTree::ExactlyOne(members),
            _ => TermTree::OneOrMore(members),
        }
    }

    pub(crate) fn terms(&mut self) -> Terms {
        Terms {
            all: self.maybe(|make| make.some(1, |make| make.tree(0))),
        }
    }

    pub(crate) fn offer(&mut self) -> AgreementOffer {
        AgreementOffer {
            name: self.maybe(DocumentMaker::text),
            agreement_id: self.maybe(DocumentMaker::name),
            context: self.context(),
            terms: self.terms(),
        }
    }

    pub(crate) fn offer_context(&mut self) -> NegotiationOfferContext {
        NegotiationOfferContext {
            counter_offer_to: self.name(),
            expiration_time: self.maybe(DocumentMaker::time),
            creator: *self
                .0
                .pick(&[NegotiationRole::Initiator, NegotiationRole::Responder]),
            state: *self.0.pick(&[
                OfferState::Advisory,
                OfferState::Solicited,
                OfferState::Acceptable,
                OfferState::Rejected,
            ]),
            state_extensions: self.maybe(DocumentMaker::fragment).into_iter().collect(),
            extensions: self.some(0, DocumentMaker::fragment),
        }
    }

    pub(crate) fn negotiation_offer(&mut self) -> NegotiationOffer {
        NegotiationOffer {
            offer_id: self.maybe(DocumentMaker::name),
            agreement_id: self.maybe(DocumentMaker::name),
            name: self.maybe(DocumentMaker::text),
            context: self.context(),
            terms: self.terms(),
            offer_context: self.offer_context(),
            constraints: NegotiationConstraints {
                items: self.some(0, DocumentMaker::item),
                constraints: self.some(0, DocumentMaker::expression),
            },
        }
    }

    pub(crate) fn item(&mut self) -> NegotiationItem {
        let (wsag, neg, xs) = (wsag::ns::WSAG, wsag::ns::WSAG_NEG, wsag::ns::XS);
        let required = self.flag();
        let importance = self.maybe(|make| i64::from(make.count()));
        let kind = if required { "Required" } else { "Optional" };
        let weight = importance
            .map(|weight| format!(" n:Importance=\"{weight}\""))
            .unwrap_or_default();
        let source = format!(
            "<n:Item xmlns:n=\"{neg}\" xmlns:wsag=\"{wsag}\" wsag:Name=\"i\" n:Type=\"{kind}\"{weight}>\
             <wsag:Location>//a:b</wsag:Location><wsag:ItemConstraint><xs:length xmlns:xs=\"{xs}\" value='1'/>\
             </wsag:ItemConstraint></n:Item>"
        );
        NegotiationItem {
            name: "i".to_owned(),
            requirement: [Requirement::Optional, Requirement::Required][usize::from(required)],
            importance,
            bounds: (None, None),
            source: Fragment::parse(&source).unwrap(),
        }
    }

    pub(crate) fn negotiation_context(&mut self) -> NegotiationContext {
        let party = |name: &str| {
            let ns = wsag::ns::WSAG_NEG;
            Fragment::parse(&format!("<n:{name} xmlns:n=\"{ns}\">CN=a</n:{name}>")).unwrap()
        };
        NegotiationContext {
            kind: if self.flag() {
                NegotiationKind::Negotiation(self.some(0, DocumentMaker::fragment))
            } else {
                NegotiationKind::Renegotiation {
                    responder_agreement: self.endpoint(),
                    initiator_agreement: self.maybe(DocumentMaker::endpoint),
                    extensions: self.some(0, DocumentMaker::fragment),
                }
            },
            expiration_time: self.maybe(DocumentMaker::time),
            negotiation_initiator: self.maybe(|_| party("NegotiationInitiator")),
            negotiation_responder: self.maybe(|_| party("NegotiationResponder")),
            agreement_responder: NegotiationRole::Responder,
            factory: self.maybe(DocumentMaker::endpoint),
            extensions: self.some(0, DocumentMaker::fragment),
        }
    }

    pub(crate) fn create(&mut self, pending: bool) -> CreateInput {
        CreateInput {
            acceptance: if pending {
                self.maybe(DocumentMaker::endpoint)
            } else {
                None
            },
            initiator: self.maybe(DocumentMaker::endpoint),
            offer: self.offer(),
            noncritical: self.some(0, |_| {
                let ns = wsag::ns::WSAG;
                let xml = format!(
                    "<w:NoncriticalExtension xmlns:w=\"{ns}\"><x xmlns=\"urn:x\"/></w:NoncriticalExtension>"
                );
                Fragment::parse(&xml).unwrap()
            }),
            negotiation: self.maybe(|make| NegotiationExtension {
                negotiation: make.maybe(DocumentMaker::endpoint),
                initiator_negotiation: make.maybe(DocumentMaker::endpoint),
                context: make.offer_context(),
                extension: make.maybe(DocumentMaker::fragment),
            }),
            renegotiation: self.maybe(|make| RenegotiationExtension {
                negotiation: make.endpoint(),
                initiator_negotiation: make.maybe(DocumentMaker::endpoint),
                responder_agreement: make.endpoint(),
                context: make.offer_context(),
                extension: make.maybe(DocumentMaker::fragment),
            }),
        }
    }
}
