//! Offers of the built-in template, and stored documents with their windows moved.

use std::fs;

use jiff::Timestamp;

/// An offer; a field that is `None` is left out of the document.
#[derive(Debug, Clone)]
pub(crate) struct Offer {
    /// The name that it goes by in lists.
    pub(crate) name: String,
    /// Application and arguments.
    pub(crate) run: Option<(&'static str, Vec<String>)>,
    /// Nodes asked for.
    pub(crate) nodes: u32,
    /// Earliest start, in seconds since the epoch.
    pub(crate) start: Option<i64>,
    /// Latest completion, in seconds since the epoch.
    pub(crate) end: Option<i64>,
    /// Contract duration in seconds.
    pub(crate) duration: i64,
    /// The most that it may cost: amount and currency.
    pub(crate) budget: Option<(&'static str, &'static str)>,
}

impl Offer {
    /// Runs `sleep` on one node as soon as there is room, in a slot of `duration` seconds.
    pub(crate) fn sleep(seconds: u32, duration: i64) -> Self {
        Self {
            run: Some(("sleep", vec![seconds.to_string()])),
            ..Self::reserve(1, duration)
        }
    }

    /// Reserves nodes for `duration` seconds as soon as there is room.
    pub(crate) fn reserve(nodes: u32, duration: i64) -> Self {
        Self {
            name: "test".to_owned(),
            run: None,
            nodes,
            start: None,
            end: None,
            duration,
            budget: None,
        }
    }

    /// The same with a budget.
    pub(crate) fn for_at_most(self, amount: &'static str, currency: &'static str) -> Self {
        Self {
            budget: Some((amount, currency)),
            ..self
        }
    }

    /// The same in the window `[start, end]`, in seconds since the epoch.
    pub(crate) fn within(self, start: i64, end: i64) -> Self {
        Self {
            start: Some(start),
            end: Some(end),
            ..self
        }
    }

    /// The same on `nodes` nodes.
    pub(crate) fn on(self, nodes: u32) -> Self {
        Self { nodes, ..self }
    }

    /// The document.
    pub(crate) fn xml(&self) -> String {
        let application = self.run.as_ref().map_or_else(String::new, |(name, arguments)| {
            let arguments = arguments.iter().map(|value| element("jsdl-posix:Argument", value)).collect::<String>();
            format!(
                r#"<jsdl:Application>{}<jsdl-posix:POSIXApplication xmlns:jsdl-posix="http://schemas.ggf.org/jsdl/2005/11/jsdl-posix">{arguments}</jsdl-posix:POSIXApplication></jsdl:Application>"#,
                element("jsdl:ApplicationName", name)
            )
        });
        let scheduling = self.budget.map_or_else(String::new, |(amount, currency)| {
            format!(
                r#"<wsag:ServiceDescriptionTerm wsag:Name="SCHEDULING" wsag:ServiceName="COMPUTE"><bsp:Scheduling xmlns:bsp="urn:bespeak:terms:1"><bsp:Budget>{}{}</bsp:Budget></bsp:Scheduling></wsag:ServiceDescriptionTerm>
"#,
                element("bsp:Amount", amount),
                element("bsp:Currency", currency)
            )
        });
        let time =
            |name: &str, at: Option<i64>| at.map_or_else(String::new, |at| element(name, &date_time(at)));
        format!(
            r#"<wsag:AgreementOffer xmlns:wsag="http://schemas.ggf.org/graap/2007/03/ws-agreement">
{name}<wsag:Context><wsag:ServiceProvider>AgreementResponder</wsag:ServiceProvider><wsag:TemplateId>advance-reservation</wsag:TemplateId><wsag:TemplateName>advance-reservation</wsag:TemplateName></wsag:Context>
<wsag:Terms><wsag:All>
<wsag:ServiceDescriptionTerm wsag:Name="JOB" wsag:ServiceName="COMPUTE"><jsdl:JobDefinition xmlns:jsdl="http://schemas.ggf.org/jsdl/2005/11/jsdl"><jsdl:JobDescription>{application}<jsdl:Resources><jsdl:TotalResourceCount>{nodes}</jsdl:TotalResourceCount></jsdl:Resources></jsdl:JobDescription></jsdl:JobDefinition></wsag:ServiceDescriptionTerm>
<wsag:ServiceDescriptionTerm wsag:Name="TIME" wsag:ServiceName="COMPUTE"><arp:AllocationTimeConstraint xmlns:arp="http://www.ogf.org/graap/AR/2009/04/">{start}{end}{duration}</arp:AllocationTimeConstraint></wsag:ServiceDescriptionTerm>
{scheduling}<wsag:GuaranteeTerm wsag:Name="COMPLETION" wsag:Obligated="ServiceProvider"><wsag:ServiceScope wsag:ServiceName="COMPUTE"/><wsag:ServiceLevelObjective><wsag:KPITarget><wsag:KPIName>completion</wsag:KPIName><wsag:CustomServiceLevel>completed le deadline</wsag:CustomServiceLevel></wsag:KPITarget></wsag:ServiceLevelObjective><wsag:BusinessValueList/></wsag:GuaranteeTerm>
</wsag:All></wsag:Terms>
</wsag:AgreementOffer>"#,
            name = element("wsag:Name", &self.name),
            nodes = element("jsdl:Exact", &self.nodes.to_string()),
            start = time("arp:StartTime", self.start),
            end = time("arp:EndTime", self.end),
            duration = element("arp:Duration", &self.duration.to_string()),
        )
    }
}

impl Offer {
    /// The document of an offer of the template with guarantees that are worth a part of the price.
    pub(crate) fn guaranteed_xml(&self) -> String {
        let template = file("templates/agreements/guaranteed-reservation.xml");
        let terms = |text: &str| {
            let (start, end) = (
                text.find("<wsag:GuaranteeTerm"),
                text.rfind("</wsag:GuaranteeTerm>"),
            );
            start.expect("a guarantee")..end.expect("a guarantee")
        };
        let mut offer = self
            .xml()
            .replace("advance-reservation", "guaranteed-reservation");
        let place = terms(&offer);
        offer.replace_range(place, &template[terms(&template)]);
        offer
    }
}

/// The present, in whole seconds since the epoch.
pub(crate) fn now() -> i64 {
    Timestamp::now().as_second()
}

/// The start of the next full hour that is at least `hours` away.
pub(crate) fn hours_ahead(hours: i64) -> i64 {
    (now() / 3_600 + 1 + hours) * 3_600
}

/// An instant as a dateTime.
pub(crate) fn date_time(at: i64) -> String {
    Timestamp::from_second(at)
        .expect("an instant of our time")
        .to_string()
}

/// A file of the repository.
pub(crate) fn file(path: &str) -> String {
    let path = format!("{}/{path}", env!("CARGO_MANIFEST_DIR"));
    fs::read_to_string(&path).unwrap_or_else(|why| panic!("{path}: {why}"))
}

/// A document with windows and expiration times in January and February 2026. They are moved so that they begin a day from now
/// and are not yet over.
pub(crate) fn moved(document: &str) -> String {
    let day = |days: i64| date_time(hours_ahead(24 * days));
    document
        .replace("2026-01-09T12:00:00Z", &day(7))
        .replace("2026-01-10T08:00:00Z", &day(1))
        .replace("2026-01-10T20:00:00Z", &day(2))
        .replace("2026-02-01T00:00:00Z", &day(30))
}

fn element(name: &str, text: &str) -> String {
    format!("<{name}>{text}</{name}>")
}
