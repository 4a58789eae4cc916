//! The offers that a resource is filled with.

use advisor::random::Random;
use clap::ValueEnum;
use domain::clock::time_in_words;
use scheduler::{Interval, Seconds, Time};
use serde_json::{Value, json};

pub(super) const MINUTE: Seconds = 60;
pub(super) const HOUR: Seconds = 60 * MINUTE;
pub(super) const DAY: Seconds = 24 * HOUR;

/// What users ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Mix {
    /// 1 to 8 of 128 nodes for 5 to 20 minutes, each due at another time within 60 days. All fit as the plan stands.
    Spread,
    /// 1 to 16 of 64 nodes for 5 minutes to 2 hours, due after 2 to 20 days. In some of them others have to move.
    Deadlines,
}

/// The form that offers are sent in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Format {
    Json,
    Xml,
}

/// So many nodes for so long within a window.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wish {
    pub(super) nodes: u32,
    pub(super) duration: Seconds,
    pub(super) window: Interval,
}

/// The body of a request.
#[derive(Debug, Clone)]
pub(super) enum Body {
    Nothing,
    Json(Value),
    Xml(String),
}

impl Mix {
    /// Nodes of the resource that it fills.
    pub(super) fn nodes(self) -> u32 {
        match self {
            Self::Spread => 128,
            Self::Deadlines => 64,
        }
    }

    /// From now to the reservation in front, so that nothing begins while it is measured.
    pub(super) fn ahead(self) -> Seconds {
        match self {
            Self::Spread => 6 * HOUR,
            Self::Deadlines => 30 * MINUTE,
        }
    }

    /// The length of a reservation of all nodes in front of the others.
    pub(super) fn front(self) -> Seconds {
        match self {
            // More than all urgent requests of one size take together.
            Self::Spread => DAY,
            Self::Deadlines => 10 * HOUR,
        }
    }

    /// The next offer, of which the window begins at an instant.
    pub(super) fn next(self, random: &mut Random, begin: Time) -> Wish {
        // Bounds that are written down here fit into a number of any width.
        let below =
            |random: &mut Random, count: u32| u32::try_from(random.below(count as usize)).unwrap_or(0);
        let (nodes, duration, due) = match self {
            Self::Spread => (
                1 + below(random, 8),
                5 * MINUTE + Seconds::from(below(random, 901)),
                40 * DAY + Seconds::from(below(random, 20 * 86_400)),
            ),
            Self::Deadlines => (
                1 + below(random, 16),
                [300, 600, 1_200, 7_200][random.below(4)],
                DAY * Seconds::from(2 + below(random, 19)),
            ),
        };
        let window = Interval::of(begin, due);
        Wish {
            nodes,
            duration,
            window,
        }
    }
}

impl Wish {
    /// Nodes for exactly this time.
    pub(super) fn exactly(nodes: u32, slot: Interval) -> Self {
        Self {
            nodes,
            duration: slot.duration(),
            window: slot,
        }
    }

    /// As a flat value.
    pub(super) fn json(&self) -> Value {
        let Interval { start, end } = self.window;
        let window = json!({ "start": time_in_words(start), "end": time_in_words(end) });
        json!({ "nodes": self.nodes, "durationSeconds": self.duration, "window": window })
    }

    /// As the body of an offer.
    pub(super) fn body(&self, format: Format) -> Body {
        match format {
            Format::Json => Body::Json(self.json()),
            Format::Xml => Body::Xml(self.xml()),
        }
    }

    fn xml(&self) -> String {
        format!(
            r#"<wsag:AgreementOffer xmlns:wsag="http://schemas.ggf.org/graap/2007/03/ws-agreement">
<wsag:Context><wsag:ServiceProvider>AgreementResponder</wsag:ServiceProvider><wsag:TemplateId>advance-reservation</wsag:TemplateId><wsag:TemplateName>advance-reservation</wsag:TemplateName></wsag:Context>
<wsag:Terms><wsag:All>
<wsag:ServiceDescriptionTerm wsag:Name="JOB" wsag:ServiceName="COMPUTE"><jsdl:JobDefinition xmlns:jsdl="http://schemas.ggf.org/jsdl/2005/11/jsdl"><jsdl:JobDescription><jsdl:Resources><jsdl:TotalResourceCount><jsdl:Exact>{nodes}</jsdl:Exact></jsdl:TotalResourceCount></jsdl:Resources></jsdl:JobDescription></jsdl:JobDefinition></wsag:ServiceDescriptionTerm>
<wsag:ServiceDescriptionTerm wsag:Name="TIME" wsag:ServiceName="COMPUTE"><arp:AllocationTimeConstraint xmlns:arp="http://www.ogf.org/graap/AR/2009/04/"><arp:StartTime>{start}</arp:StartTime><arp:EndTime>{end}</arp:EndTime><arp:Duration>{duration}</arp:Duration></arp:AllocationTimeConstraint></wsag:ServiceDescriptionTerm>
<wsag:GuaranteeTerm wsag:Name="COMPLETION" wsag:Obligated="ServiceProvider"><wsag:ServiceScope wsag:ServiceName="COMPUTE"/><wsag:ServiceLevelObjective><wsag:KPITarget><wsag:KPIName>completion</wsag:KPIName><wsag:CustomServiceLevel>completed le deadline</wsag:CustomServiceLevel></wsag:KPITarget></wsag:ServiceLevelObjective><wsag:BusinessValueList/></wsag:GuaranteeTerm>
</wsag:All></wsag:Terms>
</wsag:AgreementOffer>"#,
            nodes = self.nodes,
            start = time_in_words(self.window.start),
            end = time_in_words(self.window.end),
            duration = self.duration,
        )
    }
}
