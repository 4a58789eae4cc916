//! The plan on its nodes, for operators: from an hour to a year, on some nodes or all of them.

use askama::Template;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Uri};
use jiff::Timestamp;
use jiff::civil::{DateTime, Time};

use super::chart::node_picture::NodePicture;
use super::chart::slots::ListedSlot;
use super::chart::{Link, Paging};
use super::values::Values;
use super::{Answer, Frame, render_page, session, text, zone};
use api::Api;
use service::{GanttQuery, GanttResourceView, GanttView, PlanChangeView};

/// The most slots in the table below the picture.
const LISTED_MAX: usize = 50;
const HOUR: i64 = 3_600;
const DAY: i64 = 24 * HOUR;
/// The time, in seconds, around now beyond which nothing is looked for.
const FARTHEST: i64 = 20 * 366 * DAY;

#[derive(Template)]
#[template(path = "portal/gantt.html")]
struct Gantt {
    frame: Frame,
    /// The address of this page.
    here: String,
    names: Vec<String>,
    /// The name that is asked for; empty for the first.
    resource: String,
    span: &'static str,
    from: String,
    first: u32,
    nodes: u32,
    paging: Paging,
    shown: Option<ResourceChart>,
    changes: Vec<Change>,
    /// When the plan was looked at, as a dateTime.
    taken: String,
}

struct ResourceChart {
    is: GanttResourceView,
    /// The number of the last node that is shown.
    last: u32,
    drawing: NodePicture,
    /// The page with all nodes, where this one has some of them.
    all_nodes: Option<String>,
    earlier_nodes: Option<String>,
    later_nodes: Option<String>,
    slots: Vec<ListedSlot>,
    more: usize,
    /// From when on slots are too many to be drawn, where they are: a dateTime.
    rest_from: Option<String>,
}

/// A change of the plan that no party has asked for.
struct Change {
    is: PlanChangeView,
    what: &'static str,
}

/// What an operator asks for.
struct GanttSelection {
    resource: String,
    span: GanttSpan,
    /// From when, in seconds since the epoch.
    start: i64,
    first: u32,
    /// How many nodes; 0 for all.
    nodes: u32,
}

/// GET /portal/gantt.
pub(super) async fn show_gantt_page(State(api): State<Api>, headers: HeaderMap, uri: Uri) -> Answer {
    let visitor = session::visitor_of_session(&api, &headers, None).await?;
    api::require_operator(&visitor.caller)?;
    let values = Values::read(uri.query().unwrap_or_default().as_bytes());
    let asked = GanttSelection::read(&values, api.service.clock().now().seconds());
    let query = GanttQuery {
        resource: Some(asked.resource.clone()).filter(|name| !name.is_empty()),
        period: (asked.start, asked.end()),
        nodes: (asked.first, if asked.nodes == 0 { u32::MAX } else { asked.nodes }),
    };
    let view = service::show_gantt(&api.service, query).await?;
    let changes = service::list_plan_changes(&api.service).await?;
    render_page(
        StatusCode::OK,
        &view_gantt(visitor.frame("Plan on nodes"), &asked, view, changes),
    )
}

impl GanttSelection {
    /// Reads the query of the page; values without sense count as left out.
    fn read(values: &Values, now: i64) -> Self {
        let span = GanttSpan::from_word(values.trimmed("span")).unwrap_or(GanttSpan::Day);
        let number = |name| values.trimmed(name).parse().unwrap_or(0);
        Self {
            resource: values.trimmed("resource").to_owned(),
            span,
            start: span.start(read_gantt_instant(values.trimmed("from")).unwrap_or(now), now),
            first: number("first"),
            nodes: number("nodes"),
        }
    }

    fn end(&self) -> i64 {
        self.start + self.span.seconds()
    }

    /// The address of the page for another time and other nodes.
    fn address(&self, span: GanttSpan, start: i64, (first, nodes): (u32, u32)) -> String {
        let mut query = form_urlencoded::Serializer::new(String::new());
        query
            .append_pair("span", span.word())
            .append_pair("from", &text::date_time(start));
        if !self.resource.is_empty() {
            query.append_pair("resource", &self.resource);
        }
        if nodes > 0 {
            query.append_pair("first", &first.to_string());
            query.append_pair("nodes", &nodes.to_string());
        }
        format!("/portal/gantt?{}", query.finish())
    }
}

fn view_gantt(frame: Frame, asked: &GanttSelection, view: GanttView, changes: Vec<PlanChangeView>) -> Gantt {
    let nodes = (asked.first, asked.nodes);
    let seconds = asked.span.seconds();
    let at = |start| asked.address(asked.span, start, nodes);
    let spans = GanttSpan::ALL.map(|span| Link {
        word: text::capitalised(span.word()),
        // What is in the middle stays there.
        address: asked.address(span, asked.start + (seconds - span.seconds()) / 2, nodes),
        is_here: span == asked.span,
    });
    let words = |at| zone::write_here(at, "%a %-d %b %Y %H:%M");
    Gantt {
        frame,
        here: at(asked.start),
        names: view.names,
        resource: asked.resource.clone(),
        span: asked.span.word(),
        from: field_of_gantt_instant(asked.start),
        first: asked.first,
        nodes: asked.nodes,
        paging: Paging {
            title: format!("{} to {}", words(asked.start), words(asked.end())),
            previous: at(asked.start - seconds),
            present: ("Now", at(view.taken - seconds / 8)),
            next: Some(at(asked.end())),
            lengths: spans.into(),
        },
        shown: view.shown.map(|is| view_gantt_resource(is, asked, view.taken)),
        changes: changes.into_iter().map(view_gantt_change).collect(),
        taken: text::date_time(view.taken),
    }
}

fn view_gantt_resource(is: GanttResourceView, asked: &GanttSelection, now: i64) -> ResourceChart {
    let (first, end) = is.nodes;
    let many = end - first;
    let page = |first| asked.address(asked.span, asked.start, (first, many));
    let listed = is.slots.iter().take(LISTED_MAX).map(ListedSlot::of);
    let marks = asked.span.marks(asked.start);
    ResourceChart {
        drawing: NodePicture::of(&is, (asked.start, asked.end()), marks, now, |first, many| {
            asked.address(asked.span, asked.start, (first, many))
        }),
        last: end - 1,
        all_nodes: (many < is.capacity).then(|| asked.address(asked.span, asked.start, (0, 0))),
        earlier_nodes: (first > 0).then(|| page(first.saturating_sub(many))),
        later_nodes: (end < is.capacity).then(|| page(end)),
        slots: listed.collect(),
        more: is.more + is.slots.len().saturating_sub(LISTED_MAX),
        rest_from: is.rest.first().map(|(start, ..)| text::date_time(*start)),
        is,
    }
}

fn view_gantt_change(is: PlanChangeView) -> Change {
    let what = match is.kind.as_str() {
        "moved" => "moved",
        "moves-recorded" => "many moved",
        "restarted" => "starts again",
        "broken" => "lost its place",
        _ => "went on near its end",
    };
    Change { is, what }
}

domain::worded! {
    /// How long the time is, with its word in an address.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    enum GanttSpan {
        Hour = "hour",
        Day = "day",
        Week = "week",
        Month = "month",
        Year = "year",
    }
}

impl GanttSpan {
    fn seconds(self) -> i64 {
        match self {
            Self::Hour => HOUR,
            Self::Day => DAY,
            Self::Week => 7 * DAY,
            Self::Month => 31 * DAY,
            Self::Year => 366 * DAY,
        }
    }

    /// The seconds between two marks; a year has one at the beginning of each month.
    fn step(self) -> i64 {
        match self {
            Self::Hour => 600,
            Self::Day => 2 * HOUR,
            Self::Week => DAY,
            Self::Month => 3 * DAY,
            Self::Year => 31 * DAY,
        }
    }

    /// The start of the time around an instant: on a whole minute, hour or day, and not beyond what anybody plans.
    fn start(self, at: i64, now: i64) -> i64 {
        let whole = match self {
            Self::Hour => 60,
            Self::Day => HOUR,
            Self::Week | Self::Month | Self::Year => DAY,
        };
        at.clamp(now - FARTHEST, now + FARTHEST).div_euclid(whole) * whole
    }

    /// The marks of the time from an instant on: seconds, and their labels.
    fn marks(self, start: i64) -> Vec<(i64, String)> {
        let zone = zone::present_rules();
        let end = start + self.seconds();
        let format = match self {
            Self::Hour | Self::Day => "%H:%M",
            Self::Week => "%a %-d %b",
            Self::Month => "%-d %b",
            Self::Year => "%b %Y",
        };
        // From the beginning of the day on, so that the marks do not depend on the start.
        let first = zone::day_in_zone(start, &zone);
        let first = if self == Self::Year {
            first.first_of_month()
        } else {
            first
        };
        let mut at = zone::second_in_zone(first, Time::midnight(), &zone);
        let mut marks = Vec::new();
        while at < end {
            if at >= start {
                marks.push((at, zone::write_here(at, format)));
            }
            at = match self {
                Self::Hour | Self::Day => at + self.step(),
                // At midnight, also where clocks have changed meanwhile.
                Self::Week | Self::Month => {
                    let next = zone::day_in_zone(at + self.step() + HOUR, &zone);
                    zone::second_in_zone(next, Time::midnight(), &zone).max(at + 1)
                }
                Self::Year => {
                    let next = zone::day_in_zone(at + self.step() + HOUR, &zone).first_of_month();
                    zone::second_in_zone(next, Time::midnight(), &zone).max(at + 1)
                }
            };
        }
        marks
    }
}

/// A dateTime with a zone, or one on the visitor's clock, or the beginning of a day there.
fn read_gantt_instant(text: &str) -> Option<i64> {
    let here = |clock: DateTime| zone::second_in_zone(clock.date(), clock.time(), &zone::present_rules());
    let instant = text.parse::<Timestamp>().ok().map(Timestamp::as_second);
    instant.or_else(|| text.parse().ok().map(here))
}

/// The value of a field with a date and a time on the visitor's clock.
fn field_of_gantt_instant(at: i64) -> String {
    let at = Timestamp::from_second(at).unwrap_or_default();
    at.to_zoned(zone::present_rules())
        .strftime("%Y-%m-%dT%H:%M")
        .to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_that_makes_no_sense_is_a_day_from_now() {
        let now = 1_796_300_000;
        let read = |query: &str| GanttSelection::read(&Values::read(query.as_bytes()), now);
        let usual = read("");
        assert!((now - 86_400..=now).contains(&usual.start));
        for query in [
            "span=decade",
            "from=soon",
            "first=-1&nodes=many",
            "from=99999-01-01T00:00:00Z",
        ] {
            let asked = read(query);
            let told = (asked.span, asked.start, asked.first, asked.nodes);
            assert_eq!(told, (GanttSpan::Day, usual.start, 0, 0), "{query}");
        }
        let asked = read("span=year&from=2026-12-01&first=10&nodes=5&resource=a%26b");
        assert_eq!((asked.span, asked.first, asked.nodes), (GanttSpan::Year, 10, 5));
        let address = asked.address(asked.span, asked.start, (10, 5));
        let again = GanttSelection::read(&Values::read(address.split_once('?').unwrap().1.as_bytes()), now);
        let told = (again.start, again.first, again.nodes, again.resource.as_str());
        assert_eq!(told, (asked.start, 10, 5, "a&b"));
        let hour = read("span=hour&from=2026-12-01T10:00");
        assert_eq!(field_of_gantt_instant(hour.start), "2026-12-01T10:00");
    }

    #[test]
    fn a_page_of_ten_thousand_slots_is_small_and_escapes_every_name() {
        for span in GanttSpan::ALL {
            let asked = GanttSelection::read(
                &Values::read(format!("span={}&from=1970-01-01", span.word()).as_bytes()),
                0,
            );
            let change = PlanChangeView {
                at: "1970-01-01T00:00:00Z".to_owned(),
                agreement: Some(uuid::Uuid::nil()),
                party: Some("<b>".to_owned()),
                kind: "broken".to_owned(),
                why: "<i>".to_owned(),
            };
            let view = GanttView {
                taken: 0,
                names: vec!["<u>".to_owned()],
                shown: Some(super::super::chart::node_picture::tests::many_slots()),
            };
            let page = view_gantt(Frame::outside("Plan on nodes"), &asked, view, vec![change]);
            let body = page.render().expect("it can be rendered");
            let (start, end) = (body.find("<svg"), body.find("</svg>"));
            let picture = end.expect("there is a picture") - start.expect("there is a picture");
            assert!(picture <= 300_000, "{span:?}: {picture}");
            assert!(body.len() <= 350_000, "{span:?}: {}", body.len());
            for raw in ["<b>", "<i>", "<u>", "<physics"] {
                assert!(!body.contains(raw), "{span:?}: {raw}");
            }
            assert!(body.contains("lost its place</a>"), "{span:?}");
        }
    }

    #[test]
    fn every_span_has_a_few_marks_that_stand_still_as_it_moves() {
        let start = 1_796_300_000;
        for span in GanttSpan::ALL {
            let marks = span.marks(span.start(start, start));
            assert!((6..=13).contains(&marks.len()), "{span:?}: {}", marks.len());
            let later = span.marks(span.start(start, start) + span.seconds() / 2);
            let common = marks.iter().filter(|mark| later.contains(mark)).count();
            assert!(common >= 2 || span == GanttSpan::Month, "{span:?}");
        }
        let year = GanttSpan::Year.marks(read_gantt_instant("2026-01-01").unwrap());
        assert_eq!(
            (year[0].1.as_str(), year[11].1.as_str()),
            ("Jan 2026", "Dec 2026")
        );
    }
}
