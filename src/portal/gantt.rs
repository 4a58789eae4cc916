//! The plan on its nodes, for operators: from an hour to a year, on some nodes or all of them.

mod times;

use askama::Template;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Uri};

use super::chart::nodes::Drawing;
use super::chart::{Link, ListedSlot, Paging};
use super::values::Values;
use super::{Answer, Frame, days, render_page, session, text};
use crate::http::{self, Api};
use crate::service::{self, GanttQuery, GanttResourceView, GanttView, PlanChangeView};
use times::Span;

/// The most slots in the table below the picture.
const LISTED_MAX: usize = 50;

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
    drawing: Drawing,
    /// The page with all nodes, where this one has some of them.
    all_nodes: Option<String>,
    earlier_nodes: Option<String>,
    later_nodes: Option<String>,
    slots: Vec<ListedSlot>,
    more: usize,
}

/// A change of the plan that no party has asked for.
struct Change {
    is: PlanChangeView,
    what: &'static str,
}

/// What an operator asks for.
struct ChartSelection {
    resource: String,
    span: Span,
    /// From when, in seconds since the epoch.
    start: i64,
    first: u32,
    /// How many nodes; 0 for all.
    nodes: u32,
}

/// GET /portal/gantt.
pub(super) async fn show_gantt_page(State(api): State<Api>, headers: HeaderMap, uri: Uri) -> Answer {
    let visitor = session::signed_in(&api, &headers, None).await?;
    http::require_operator(&visitor.caller)?;
    let values = Values::read(uri.query().unwrap_or_default().as_bytes());
    let asked = ChartSelection::read(&values, api.service.clock().now().seconds());
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

impl ChartSelection {
    /// Reads the query of the page; values without sense count as left out.
    fn read(values: &Values, now: i64) -> Self {
        let span = Span::from_word(values.trimmed("span")).unwrap_or(Span::Day);
        let number = |name| values.trimmed(name).parse().unwrap_or(0);
        Self {
            resource: values.trimmed("resource").to_owned(),
            span,
            start: span.start(times::read_instant(values.trimmed("from")).unwrap_or(now), now),
            first: number("first"),
            nodes: number("nodes"),
        }
    }

    fn end(&self) -> i64 {
        self.start + self.span.seconds()
    }

    /// The address of the page for another time and other nodes.
    fn address(&self, span: Span, start: i64, (first, nodes): (u32, u32)) -> String {
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

fn view_gantt(frame: Frame, asked: &ChartSelection, view: GanttView, changes: Vec<PlanChangeView>) -> Gantt {
    let nodes = (asked.first, asked.nodes);
    let seconds = asked.span.seconds();
    let at = |start| asked.address(asked.span, start, nodes);
    let spans = Span::ALL.map(|span| Link {
        word: text::capitalised(span.word()),
        // What is in the middle stays there.
        address: asked.address(span, asked.start + (seconds - span.seconds()) / 2, nodes),
        is_here: span == asked.span,
    });
    let words = |at| days::write_here(at, "%a %-d %b %Y %H:%M");
    Gantt {
        frame,
        here: at(asked.start),
        names: view.names,
        resource: asked.resource.clone(),
        span: asked.span.word(),
        from: times::field_of_instant(asked.start),
        first: asked.first,
        nodes: asked.nodes,
        paging: Paging {
            title: format!("{} to {}", words(asked.start), words(asked.end())),
            previous: at(asked.start - seconds),
            present: ("Now", at(view.taken - seconds / 8)),
            next: Some(at(asked.end())),
            lengths: spans.into(),
        },
        shown: view.shown.map(|is| view_resource(is, asked, view.taken)),
        changes: changes.into_iter().map(view_change).collect(),
        taken: text::date_time(view.taken),
    }
}

fn view_resource(is: GanttResourceView, asked: &ChartSelection, now: i64) -> ResourceChart {
    let (first, end) = is.nodes;
    let many = end - first;
    let page = |first| asked.address(asked.span, asked.start, (first, many));
    let listed = is.slots.iter().take(LISTED_MAX).map(ListedSlot::of);
    let marks = asked.span.marks(asked.start);
    ResourceChart {
        drawing: Drawing::of(&is, (asked.start, asked.end()), marks, now, |first, many| {
            asked.address(asked.span, asked.start, (first, many))
        }),
        last: end - 1,
        all_nodes: (many < is.capacity).then(|| asked.address(asked.span, asked.start, (0, 0))),
        earlier_nodes: (first > 0).then(|| page(first.saturating_sub(many))),
        later_nodes: (end < is.capacity).then(|| page(end)),
        slots: listed.collect(),
        more: is.slots.len().saturating_sub(LISTED_MAX),
        is,
    }
}

fn view_change(is: PlanChangeView) -> Change {
    let what = match is.kind.as_str() {
        "moved" => "moved",
        "restarted" => "starts again",
        "broken" => "lost its place",
        _ => "went on near its end",
    };
    Change { is, what }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_that_makes_no_sense_is_a_day_from_now() {
        let now = 1_796_300_000;
        let read = |query: &str| ChartSelection::read(&Values::read(query.as_bytes()), now);
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
            assert_eq!(told, (Span::Day, usual.start, 0, 0), "{query}");
        }
        let asked = read("span=year&from=2026-12-01&first=10&nodes=5&resource=a%26b");
        assert_eq!((asked.span, asked.first, asked.nodes), (Span::Year, 10, 5));
        let address = asked.address(asked.span, asked.start, (10, 5));
        let again = ChartSelection::read(&Values::read(address.split_once('?').unwrap().1.as_bytes()), now);
        let told = (again.start, again.first, again.nodes, again.resource.as_str());
        assert_eq!(told, (asked.start, 10, 5, "a&b"));
        let hour = read("span=hour&from=2026-12-01T10:00");
        assert_eq!(times::field_of_instant(hour.start), "2026-12-01T10:00");
    }

    #[test]
    fn a_page_of_ten_thousand_slots_is_small_and_escapes_every_name() {
        for span in Span::ALL {
            let asked = ChartSelection::read(
                &Values::read(format!("span={}&from=1970-01-01", span.word()).as_bytes()),
                0,
            );
            let change = PlanChangeView {
                at: "1970-01-01T00:00:00Z".to_owned(),
                agreement: uuid::Uuid::nil(),
                party: Some("<b>".to_owned()),
                kind: "broken".to_owned(),
                why: "<i>".to_owned(),
            };
            let view = GanttView {
                taken: 0,
                names: vec!["<u>".to_owned()],
                shown: Some(super::super::chart::nodes::tests::many_slots()),
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
}
